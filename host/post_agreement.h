#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "comm/communicator.h"
#include "host/plan.h"
#include "host/run_state.h"

namespace heddle::host {

// NCCL does not notice when ranks come to a collective with different counts or types: it hangs, or
// its results are wrong. So before the first run with sizes that are new to it each rank tells the
// others what it will post, over the host, and compares what it shares with each of them: on each
// communicator, and from each rank to each other, in the order of the posts, as NCCL matches them.
// From a branch that the run decides on, nothing is known of what stands behind it. Runs with sizes
// that were compared once tell nobody: that ranks run with the same sizes is seen to by the control
// board, and counts follow from program and sizes, but where an input that is posted itself has
// more elements allocated than its sizes say. The lists of an all-to-all-v come from the run and
// are compared there (comm/board_counts.h). Thread-safe; in a job, runs begin in one order on all
// ranks.
class PostAgreement {
 public:
  // `world` may be nullptr. `communicates`: the program does, on some rank.
  PostAgreement(comm::World* world, bool communicates);

  // When the plan's sizes are new: collective over the job, after JobLink::beginRun(). UserError on
  // the ranks that disagree, naming instruction, ranks and both operations.
  void agree(const Plan& plan, RunResources& resources);

 private:
  comm::World* world_;
  bool talks_;
  std::mutex mutex_;
  std::set<uint64_t> agreed_;  // Plan::sizes_hash
};

}  // namespace heddle::host
