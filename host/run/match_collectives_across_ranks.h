#pragma once

#include <cstdint>
#include <set>

#include "comm/communicator.h"
#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Compares what the ranks of a job will post, before they post it. NCCL does not notice when ranks
// post collectives with different counts or types: it hangs, or its results are wrong. Other
// transports compare operations when these are posted, and need no such comparison.
//
// When:    before the first run with sizes that are new to the Executable. Later runs with these
//          sizes exchange nothing, because counts follow from the program and the sizes, and the
//          job monitor checks that all ranks run with the same sizes. unroll() checks that a posted
//          input has the allocation that its type states, so its count follows too.
// What:    each rank sends its posts to all others over the host. Two ranks compare the posts in
//          which both take part: the collectives of each communicator that they share, and the
//          transfers between the two. They compare the posts in the order of issue, because NCCL
//          matches posts in this order.
// Limits:  posts after a branch on a scalar are not compared, because only the run decides the
//          branch. The counts of an all-to-all-v are also known only in the run, which compares
//          them (comm/monitor/posted_counts.h).
// Cache:   a run is compared if none of the earlier runs had its sizes. The plans that a rank has
//          kept do not matter: ranks may keep different plans, but have run the same sizes. When
//          kMost different sizes are known, all are forgotten at once and a new round begins. This
//          bounds the memory. A plan stores the number of the round in which the ranks agreed on
//          it.
// Threads: one thread at a time, which holds RunOrder::running. All ranks begin runs in one order.
class CrossRankMatcher {
 public:
  static constexpr size_t kMost = 4096;

  // `world` nullptr: one rank. `communicates`: the program communicates on some rank. `most`
  // replaces kMost, for tests.
  CrossRankMatcher(comm::World* world, bool communicates, size_t most = kMost);

  // Compares the posts of the plan if its sizes are new. In this case the call is collective over
  // the job. Call it after JobLink::beginRun(). If the ranks have agreed on the plan in this round,
  // the call compares two numbers (Plan::agreed and the round) and sends nothing. UserError on the
  // ranks that disagree, naming the instruction, two ranks and both operations.
  void agree(const Plan& plan, RunResources& resources);

 private:
  bool isNew(uint64_t sizes_hash);
  void compare(const Plan& plan, RunResources& resources);

  comm::World* world_;
  size_t most_;
  bool exchanges_;
  uint64_t round_ = 1;         // compared with Plan::agreed
  std::set<uint64_t> agreed_;  // Plan::sizes_hash of the sizes compared in this round
};

}  // namespace heddle::host
