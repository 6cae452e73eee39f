#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "comm/communicator.h"
#include "host/device/device.h"
#include "ir/base/size.h"

namespace heddle::host {

// Chooses the algorithms that libraries use for the matrix products and attentions of one
// Executable.
//
// One rank:      the rank's own device chooses.
// Several ranks: rank 0 chooses for all ranks, because replicated results must have equal bits on
//                all ranks. When the ranks prepare for new sizes, each rank sends its questions to
//                rank 0. A question describes one library call (AlgorithmChoices in
//                host/device/device.h). Rank 0 sends its choices to all ranks.
// When:          the ranks exchange questions only for unsharded sizes for which they have not yet
//                done so. Unsharded sizes are equal on all ranks, so either all ranks take part or
//                none. If only the strides on one rank change later, this rank may have a new
//                question. For this question, the rank uses the library's first proposal, because
//                the ranks have agreed on no choice.
// No exchange:   if a program does not communicate, the ranks exchange nothing. In a job of several
//                ranks, all ranks then use the library's first proposals.
// Threads:       thread-safe. All ranks of a job must call choose() in the same order.
class AlgorithmAgreement {
 public:
  // Returns the choice for one question (Device::chooseAlgorithm(), CudnnModule::choose).
  using Ask = std::function<std::string(const std::string&)>;

  // - `world`: nullptr means a job of one rank.
  // - `exchanges`: true means that the program communicates, that hasTimedLibraryCalls()
  //   (host/program/teams.h) is true for it, and that Device::choosesAlgorithms() is true.
  AlgorithmAgreement(comm::World* world, bool exchanges) : world_(world), exchanges_(exchanges) {}

  // Returns choices for a plan. `questions` are the questions of the plan, `sizes` its unsharded
  // sizes. The result may lack choices, and may contain choices for other questions. In a job of
  // several ranks, if `exchanges` is true and the sizes are new, the call is collective over the
  // job.
  AlgorithmChoices choose(const std::set<std::string>& questions, const SizeBindings& sizes,
                          const Ask& ask);
  // Returns all choices so far.
  AlgorithmChoices all() const;

 private:
  // Sends the questions to rank 0 and adds the choices of rank 0 to `choices_`.
  void exchange(const std::set<std::string>& questions, const Ask& ask);

  comm::World* world_;
  bool exchanges_;
  mutable std::mutex mutex_;
  std::set<SizeBindings> agreed_;  // the sizes for which the ranks have exchanged questions
  AlgorithmChoices choices_;       // all choices so far
};

}  // namespace heddle::host
