#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "comm/communicator.h"
#include "comm/nccl/job_member.h"
#include "comm/nccl/nccl_call.h"
#include "comm/nccl/nccl_job.h"

namespace heddle::comm::nccl {

// The communicator of one team on NCCL: one GPU per rank, stream-ordered.
//
// How NCCL differs from the transports on host memory:
// - NCCL reduces in an order that depends on its algorithm and on the size, not in rank order. An
//   allreduce gives all ranks of one run the same result. f16 and bf16 may be rounded at each step.
//   A minimum or maximum may ignore NaN inputs.
// - Neither NCCL nor this class checks that ranks post the same operation. A check would need a
//   message and a wait on the host, which take many times longer than a post (2 us). Instead,
//   ranks compare kinds and counts before the first run with new sizes
//   (host/run/match_collectives_across_ranks.h). The job monitor compares the lists of counts of an
//   all-to-all-v (JobMonitor::compareCounts).
//
// A rank gives up, that is, it aborts all of its communicators, in these cases (NcclJob in
// comm/nccl/nccl_job.h):
// - A post fails or exceeds its time limit, or NCCL reports an error later.
// - The job has failed. probe(), test() and the destructors of communicators notice this, and the
//   thread of NcclJob notices it during a long post.
// - The rank may have copy channels, and another rank of its machine has given up.
// The kernels of the communicators then end, and every later post(), test() and probe() throws
// UserError with the reason.
//
// probe() and test() may run concurrently with post().
//
// NCCL connects the ranks in the first post of each kind of collective. This post may therefore
// wait on the host until the other ranks have posted too. NcclJob (comm/nccl/nccl_job.h) ends the
// post after a time limit.
class NcclCommunicator : public Communicator, public JobMember {
 public:
  // Takes ownership of `comm`, a blocking communicator on CUDA device `device`. A non-blocking
  // communicator would be slower, because each call on it starts a thread (60 us).
  NcclCommunicator(ncclComm_t comm, int rank, int size, int device, std::shared_ptr<NcclJob> job);
  // Requires that all posted operations have completed, or that the job has failed. After a
  // failure, the destructor aborts all communicators of the rank.
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isStreamOrdered() const override { return true; }
  Ticket post(std::span<const Operation> group, void* stream) override;
  // Returns true, or throws UserError as probe() does, for example if the job has failed or NCCL
  // reports an error. The result true does not mean that the group has completed. Work after the
  // group on the same stream starts only when the group has completed.
  bool test(Ticket ticket) override;
  void probe() override;

  // Aborts the NCCL communicator, even while a call on it waits for other ranks.
  void giveUp(const std::string& why) noexcept override;
  int64_t busySince() const override { return busy_since_.load(std::memory_order_relaxed); }

 private:
  class Busy;
  void enqueueGroup(std::span<const Operation> group, cudaStream_t stream);
  void enqueue(const Operation& operation, cudaStream_t stream);
  void enqueueRooted(const Operation& operation, cudaStream_t stream);
  void enqueueParts(const Operation& operation, cudaStream_t stream);
  void send(const void* data, int64_t count, DType dtype, int peer, cudaStream_t stream);
  void receive(void* data, int64_t count, DType dtype, int peer, cudaStream_t stream);
  std::string error();  // the error that NCCL reports; empty: no error

  int rank_;
  int size_;
  int device_;
  std::shared_ptr<NcclJob> job_;
  FaultText fault_;
  std::atomic<int64_t> busy_since_{0};
  // Guards the members below. A running call of post() and ncclCommRevoke use comm_ without it.
  std::mutex mutex_;
  std::condition_variable idle_;
  ncclComm_t comm_;
  std::string failure_;  // why the communicator was aborted; empty: not aborted
  Ticket next_ = 0;
  void* flag_ = nullptr;  // device memory for the reduction that implements a barrier
};

}  // namespace heddle::comm::nccl
