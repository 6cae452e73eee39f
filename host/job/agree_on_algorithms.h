#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "comm/communicator.h"
#include "host/device/device.h"
#include "ir/base/size.h"

namespace heddle::host {

// Library algorithms of one Executable's products. A rank alone asks its device. In a job rank 0
// decides for all, because replicated results must have the same bits everywhere: when the ranks
// prepare for sizes that are new to them, each tells rank 0 its keys, and rank 0 tells everyone its
// choices. Global sizes alone decide whether they talk, so they all do or none does; a key that
// comes up later, because a rank's strides changed, has no choice and gets the library's first
// guess. Ranks of a program that never communicates owe each other nothing and do not talk.
// Thread-safe; in a job, runs are prepared in one order on all ranks.
class AlgorithmAgreement {
 public:
  using Ask = std::function<std::string(const std::string&)>;  // Device::chooseAlgorithm

  // `world` may be nullptr: one rank. `talks`: the program communicates and has library products,
  // and the devices choose algorithms.
  AlgorithmAgreement(comm::World* world, bool talks) : world_(world), talks_(talks) {}

  // The choices for a plan with these keys.
  AlgorithmChoices choose(const std::set<std::string>& questions, const SizeBindings& sizes,
                          const Ask& ask);

 private:
  void exchange(const std::set<std::string>& questions, const Ask& ask);

  comm::World* world_;
  bool talks_;
  std::mutex mutex_;
  std::set<SizeBindings> agreed_;
  AlgorithmChoices choices_;  // of the job
};

}  // namespace heddle::host
