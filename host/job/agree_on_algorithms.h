#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "comm/communicator.h"
#include "host/device/device.h"
#include "ir/base/size.h"

namespace heddle::host {

// Chooses the library algorithms for the matrix products of one Executable.
//
// One rank:      the rank asks its own device.
// Several ranks: rank 0 chooses for all ranks, because replicated results must have equal bits on
//                all ranks. When the ranks prepare for new sizes, each rank sends its questions
//                (Device::algorithmQuestions()) to rank 0. Rank 0 sends its choices to all ranks.
// When:          the ranks exchange questions only if the unsharded sizes are new. These are equal
//                on all ranks, so either all ranks take part or none. A rank may have a new
//                question later, because its strides have changed. This question has no choice, and
//                the rank uses the library's first guess.
// No exchange:   the ranks of a program that does not communicate need not agree. They exchange
//                nothing and use the library's first guess.
// Threads:       thread-safe. In a job, all ranks prepare runs in the same order.
class AlgorithmAgreement {
 public:
  // Device::chooseAlgorithm: returns the choice for one question.
  using Ask = std::function<std::string(const std::string&)>;

  // `world` nullptr: a job of one rank. `exchanges`: the program communicates and contains matrix
  // products of a library, and the devices choose algorithms.
  AlgorithmAgreement(comm::World* world, bool exchanges) : world_(world), exchanges_(exchanges) {}

  // Returns the choices for a plan with these questions and unsharded sizes. Collective over the
  // job if the sizes are new.
  AlgorithmChoices choose(const std::set<std::string>& questions, const SizeBindings& sizes,
                          const Ask& ask);

 private:
  void exchange(const std::set<std::string>& questions, const Ask& ask);

  comm::World* world_;
  bool exchanges_;
  std::mutex mutex_;
  std::set<SizeBindings> agreed_;
  AlgorithmChoices choices_;  // of the job
};

}  // namespace heddle::host
