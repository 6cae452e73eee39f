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
// Several ranks: rank 0 chooses for all, because replicated results must have equal bits
// everywhere.
//                When the ranks prepare for new sizes, each sends its questions to rank 0, and rank
//                0 sends its choices to all.
// Exchange:      unsharded sizes alone decide whether ranks exchange, so all of them do or none.
//                A question that comes up later, because the strides of a rank have changed, has no
//                choice. It gets the library's first guess.
// No exchange:   ranks of a program that does not communicate need not agree. They exchange nothing
//                and take the library's first guess.
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
