#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/modules.h"
#include "comm/nccl/job_member.h"
#include "comm/nccl/nccl_job.h"
#include "comm/nccl/shared_arena.h"
#include "comm/nccl/stream_barrier.h"

namespace heddle::comm::nccl {

// A copy channel of a team whose GPUs reach each other's memory (Carrier::copy channel),
// stream-ordered: parts are moved by the GPUs' copy engines, streams meet by stream memory
// operations, and SMs do no more than sum and copy within a GPU. Products beside it keep their SMs:
// next to NCCL's kernels they take a quarter longer, next to copies what memory and power cost
// (docs/benchmarks.md).
//   reduce-scatter  every rank brings each other its part (SharedArena::in); all meet; each sums
//   allgather       every rank puts its part out; all meet; each fetches those of the others
//   allreduce       the first, of parts of equal size, then the second of the sums
// What is longer than the arena goes in pieces. The two turns of the arena alternate: who writes
// one for piece n has met all others in piece n - 1, and so after they were done with piece n - 2.
//
// Sums are taken in rank order, in f32 for the half types, each by one rank: the same bits on all,
// as on host memory. A post never waits for peers. Errors and the end of a job as for
// NcclCommunicator. Once a rank has given up, streams of its peers go on with what means nothing,
// and may hand it to others: probe() tells, as all ranks of the host can see it before
// (CopyChannelMember).
class CopyCommunicator : public Communicator, public JobMember {
 public:
  // `arena` has reached all ranks.
  CopyCommunicator(std::unique_ptr<SharedArena> arena, int rank, int size, int device,
                   DeviceReduce reduce, std::shared_ptr<NcclJob> job);
  // What was posted is over, or the job has failed. Waits a moment for peers of other processes
  // that still use this rank's memory; if they come later it is freed later (SharedArena).
  ~CopyCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isStreamOrdered() const override { return true; }
  bool holdsDevice() const override { return false; }
  // Only kinds that mayCopy().
  Ticket post(std::span<const Operation> group, void* stream) override;
  bool test(Ticket ticket) override;
  void probe() override;

  void giveUp(const std::string& why) noexcept override;
  int64_t busySince() const override { return 0; }

 private:
  // Where the part of each rank lies in the longer buffer, in elements.
  struct Parts {
    int64_t stride;  // from one to the next
    int64_t count;   // of one
    int64_t total;   // of all: the last ranks' may be short, or empty
    int64_t countOf(int rank) const;
  };
  struct Piece {
    const std::byte* send;
    std::byte* recv;
    Parts parts;
    DType dtype;
    ReduceOp reduce;
    int64_t bytes(int64_t count) const { return count * sizeOf(dtype); }
    int64_t begin(int rank) const { return bytes(rank * parts.stride); }
  };
  void enqueueAll(std::span<const Operation> group, cudaStream_t stream);
  void enqueue(const Operation& operation, cudaStream_t stream);
  void move(CollectiveKind kind, const Piece& piece, cudaStream_t stream);
  void bring(const Piece& piece, cudaStream_t stream);
  void sum(const Piece& piece, void* to, cudaStream_t stream);
  void fetch(const Piece& piece, cudaStream_t stream);
  void copyHere(void* to, const void* from, int64_t bytes, cudaStream_t stream);
  void add(void* to, const void* from, int64_t bytes);
  void copy(cudaStream_t stream);  // what was added
  void meet(cudaStream_t stream) { barrier_.meet(stream, ++number_); }
  cudaError_t makeApart();
  std::string failure();     // why it was given up; empty: it was not
  void endWaits() noexcept;  // of this rank's streams, until they are over
  bool mayEndWaits(std::chrono::steady_clock::duration since) const;
  bool waitForStreams();  // false: they do not end

  std::unique_ptr<SharedArena> arena_;
  int rank_;
  int size_;
  int device_;
  DeviceReduce reduce_;
  std::shared_ptr<NcclJob> job_;
  FaultText fault_;
  StreamBarrier barrier_;
  std::vector<uint32_t*> mine_;  // where peers store
  std::vector<void*> to_;        // of copies that begin together
  std::vector<const void*> from_;
  std::vector<size_t> bytes_;
  std::vector<const void*> sources_;  // of a sum, in rank order
  std::mutex mutex_;  // held by posts, which may wait on the host for room in a full queue
  std::atomic<uint32_t> number_{0};  // of the latest meeting
  std::atomic<bool> is_posting_{false};
  int turn_ = 0;
  Ticket next_ = 0;
  std::mutex failure_mutex_;  // guards the next two; never held beside a call of CUDA's
  std::string failure_;
  std::thread ender_;
  cudaEvent_t posted_ = nullptr;  // behind the latest post
  cudaStream_t apart_ = nullptr;  // for the end
};

}  // namespace heddle::comm::nccl
