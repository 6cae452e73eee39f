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

// A team on NCCL with one GPU per rank, stream-ordered.
//
// Differences from comm/communicator.h:
// - NCCL chooses the order of a reduction by algorithm and size. All ranks of one run get the same
//   result, but not always that of rank order. bf16 may be rounded at each step, and a minimum or
//   maximum need not keep a NaN.
// - Neither NCCL nor this class checks that ranks post the same operation. A comparison costs a
//   message and a wait on the host, many times the 2 us of a post. Ranks compare kinds and counts
//   before the first run with new sizes (host/run/match_collectives_across_ranks.h), and the lists
//   of an all-to-all-v through the job monitor.
//
// After an error of NCCL or of the job, or a deadline, all communicators of the rank are aborted:
// their kernels on the device end, and every later call throws UserError with the reason. probe()
// and test() may run concurrently with post().
//
// The first post of a kind may wait on the host until the other ranks have posted too, because NCCL
// connects them then. NcclJob watches such a post and ends it.
class NcclCommunicator : public Communicator, public JobMember {
 public:
  // Takes ownership of `comm`, which is blocking (each call on a non-blocking communicator starts a
  // thread, 60 us) and belongs to CUDA device `device`.
  NcclCommunicator(ncclComm_t comm, int rank, int size, int device, std::shared_ptr<NcclJob> job);
  // Requires that all posted operations have completed. If the job has failed, the destructor
  // aborts the communicator.
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isStreamOrdered() const override { return true; }
  Ticket post(std::span<const Operation> group, void* stream) override;
  // Returns true, or throws an error that NCCL has met. The stream orders completion.
  bool test(Ticket ticket) override;
  void probe() override;

  // Aborts the communicator of NCCL, also during a call that waits for other ranks.
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
  std::string error();  // of NCCL; empty: none

  int rank_;
  int size_;
  int device_;
  std::shared_ptr<NcclJob> job_;
  FaultText fault_;
  std::atomic<int64_t> busy_since_{0};
  std::mutex mutex_;  // guards the members below; a running call reads comm_ without it
  std::condition_variable idle_;
  ncclComm_t comm_;
  std::string failure_;  // why it was aborted
  Ticket next_ = 0;
  void* flag_ = nullptr;  // device memory that barriers reduce
};

}  // namespace heddle::comm::nccl
