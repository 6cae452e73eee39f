#pragma once

#include <cstdint>
#include <set>

#include "comm/communicator.h"
#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Checks, before a run, that all ranks of a job will post matching collectives and transfers (sends
// and receives). A post is the call with which a rank enqueues its part of such an operation. Posts
// match if they can be parts of the same operation (host/verify/collectives_fit.h). If ranks post
// collectives with different counts or types, NCCL does not report this: it hangs, or its results
// are wrong. In one process, ranks compare operations when they are posted. MPI compares the sizes
// of messages. For these two transports the class does nothing.
//
// When:    before the first run with each set of sizes. Later runs with the same sizes exchange
//          nothing, because the counts depend only on the program and the sizes. After the class
//          has discarded its hashes (see Cache), it compares again. To ensure that the counts
//          depend on nothing else, unroll() rejects an input that is sent or received if its
//          allocated sizes or strides differ from those of its type. The job monitor
//          (comm/monitor/job_monitor.h) checks that all ranks run with the same sizes.
// What:    each rank sends a list of its posts to all other ranks (World::exchange()). Two ranks
//          compare the posts in which both take part: the collectives of each communicator that
//          they share, and the transfers between the two. The lists are in the order of issue,
//          because NCCL matches posts in this order.
// Limits:  posts inside a branch on a scalar are not compared, because only the run decides the
//          branch. Later collectives of the same communicator, and later transfers from the same
//          sender to the same receiver, are then not compared either. The counts of an all-to-all-v
//          are also known only in the run. During the run, the ranks of one machine compare these
//          counts (comm/monitor/posted_counts.h).
// Cache:   the class stores a hash of the sizes of each run that it has compared. A run needs a
//          comparison if its hash is not stored. All ranks decide this alike, because they store
//          the same hashes. The cached plans cannot decide this, because the ranks may have cached
//          different plans. To bound the memory, the class discards all hashes when kMost are
//          stored, and begins a new round. A plan stores the number of the latest round in which
//          the ranks agreed on it.
// Threads: one thread at a time may call agree(); the thread must hold RunOrder::running. All ranks
//          must begin their runs in the same order.
class CrossRankMatcher {
 public:
  static constexpr size_t kMost = 4096;

  //   world         nullptr: the job has one rank
  //   communicates  true: the program communicates on some rank
  //   most          largest number of stored hashes; tests pass a small number
  CrossRankMatcher(comm::World* world, bool communicates, size_t most = kMost);

  // Compares the posts of the plan if its sizes are new in this round. In this case, the call
  // blocks until every rank has called agree(). Call it after JobLink::beginRun(). If the ranks
  // have already agreed on the plan in this round, the call does nothing and is cheap. Throws
  // UserError on the ranks that disagree. The error names the instruction and two ranks, and
  // usually the operations of both.
  void agree(const Plan& plan, RunResources& resources);

 private:
  bool isNew(uint64_t sizes_hash);
  void compare(const Plan& plan, RunResources& resources);

  comm::World* world_;
  size_t most_;
  bool exchanges_;
  uint64_t round_ = 1;         // number of the current round
  std::set<uint64_t> agreed_;  // Plan::sizes_hash of the sizes compared in this round
};

}  // namespace heddle::host
