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

// A team on NCCL, one GPU a rank, stream-ordered.
//
// What differs from comm/communicator.h: NCCL chooses the order of a reduction by algorithm and
// size. A result is the same on every rank of one run, but not always that of rank order, and bf16
// may be rounded at each step. A minimum or maximum need not keep a NaN. NCCL does not check that
// ranks post the same operation, nor does this: to compare costs a message and a wait of the host,
// many times the 2 us that a post takes. The ranks of a program compare kinds and counts before the
// first run with new sizes (host/run/match_collectives_across_ranks.h), and the lists of an
// all-to-all-v, which come from the run, on the control job monitor.
//
// After an error of NCCL's, of the job or a deadline all communicators of the rank are given up:
// their kernels on the device end, and every later call throws UserError with the reason. probe()
// and test() are safe beside post().
//
// The first post of a kind may wait on the host until its peers have posted too, as NCCL connects
// them then; NcclJob watches such a post and ends it.
class NcclCommunicator : public Communicator, public JobMember {
 public:
  // Takes over `comm`, a blocking one (a call on a non-blocking one costs a thread, 60 us), made on
  // CUDA device `device`.
  NcclCommunicator(ncclComm_t comm, int rank, int size, int device, std::shared_ptr<NcclJob> job);
  // What was posted is over, or the job has failed and it is given up.
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isStreamOrdered() const override { return true; }
  Ticket post(std::span<const Operation> group, void* stream) override;
  // Only tells an error NCCL has met on its own; completion is the stream's business.
  bool test(Ticket ticket) override;
  void probe() override;

  // Aborts NCCL's communicator, beside a call that waits for its peers too.
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
  std::string error();  // of NCCL; empty while all is well

  int rank_;
  int size_;
  int device_;
  std::shared_ptr<NcclJob> job_;
  FaultText fault_;
  std::atomic<int64_t> busy_since_{0};
  std::mutex mutex_;  // guards what follows; comm_ is read without it by the call that is under way
  std::condition_variable idle_;
  ncclComm_t comm_;
  std::string failure_;  // why it was given up
  Ticket next_ = 0;
  void* flag_ = nullptr;  // device memory that barriers reduce
};

}  // namespace heddle::comm::nccl
