#pragma once

#include <cstdint>
#include <set>

#include "comm/communicator.h"
#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// NCCL does not notice when ranks come to a collective with different counts or types: it hangs, or
// its results are wrong. So before the first run with sizes that are new to it each rank tells the
// others what it will post, over the host, and compares what it shares with each of them: on each
// communicator, and from each rank to each other, in the order of the posts, as NCCL matches them.
// From a branch that the run decides on, nothing is known of what stands behind it. Runs with sizes
// that were compared once tell nobody: that ranks run with the same sizes is seen to by the
// monitor_options job monitor, and counts follow from program and sizes: the unrolled program sees
// to it that an input which is posted itself is allocated as its type says. The lists of an
// all-to-all-v come from the run and are compared there (comm/monitor/posted_counts.h).
//
// Whether a run is compared follows from the sizes of the runs before it, which are those of all
// ranks, and not from what a rank has kept of its plans. After kMost different sizes all are
// forgotten at once, so that they take no more memory, and compared again when they come again; a
// plan that was agreed on before that knows the round in which it was.
//
// One thread at a time, while RunOrder::running is held; runs begin in one order on all ranks.
class CrossRankMatcher {
 public:
  static constexpr size_t kMost = 4096;

  // `world` may be nullptr. `communicates`: the program does, on some rank. `most`: kMost.
  CrossRankMatcher(comm::World* world, bool communicates, size_t most = kMost);

  // When the plan's sizes are new: collective over the job, after JobLink::beginRun(). UserError on
  // the ranks that disagree, naming instruction, ranks and both operations. A look at one number
  // for a plan that was agreed on in this round.
  void agree(const Plan& plan, RunResources& resources);

 private:
  bool isNew(uint64_t sizes_hash);
  void compare(const Plan& plan, RunResources& resources);

  comm::World* world_;
  size_t most_;
  bool talks_;
  uint64_t round_ = 1;         // Plan::agreed
  std::set<uint64_t> agreed_;  // Plan::sizes_hash, of this round
};

}  // namespace heddle::host
