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

// The stream-ordered communicator of a copy channel (Carrier::copy_channel in
// comm/communicator.h). Requires that the GPUs of the team can access each other's memory. Copy
// engines move the data, and stream memory operations synchronise the streams. Only reductions and
// copies within a GPU use SMs, and only briefly. A matrix product that runs at the same time
// therefore keeps its SMs almost all the time, and mainly loses memory bandwidth and power. Next to
// NCCL kernels, a matrix product takes about a quarter longer (docs/overlap.md).
//
// The collectives work as follows ("sum" stands for a reduction of any kind):
//   reduce-scatter  every rank pushes a part to each other rank (SharedArena::in); barrier; each
//                   rank sums the parts that it received and its own part
//   allgather       every rank stores its part in SharedArena::out; barrier; each rank pulls the
//                   parts of the other ranks
//   allreduce       a reduce-scatter of one part per rank, then an allgather of the sums
// If the parts are longer than SharedArena::partBytes(), the collective is split into pieces.
// Successive pieces use the two halves of the arena alternately, so that no rank overwrites data
// that another rank still needs. For example, a rank starts piece 3 only after the barrier of
// piece 2. When this barrier is complete, all ranks have finished piece 1, which used the same
// half as piece 3.
//
// One rank computes each sum, in rank order, and adds 16-bit floats in f32. The result therefore
// has the same bits on all ranks. The transports that reduce on host memory produce the same bits.
// Unless the job fails, post() waits for other ranks only while the queue of its stream is full.
// Errors and failures of
// the job are handled as in NcclCommunicator (comm/nccl/nccl_communicator.h).
//
// If a rank gives up (NcclJob::giveUp() in comm/nccl/nccl_job.h), the waits in its streams end.
// The streams then continue with invalid data, which may spread to all ranks. The rank therefore
// first reports in a table (comm/nccl/copy_channel_table.h) that it has given up. probe() of every
// rank of the machine reads this table.
class CopyCommunicator : public Communicator, public JobMember {
 public:
  // Requires that SharedArena::reach() has succeeded on all ranks of the team.
  CopyCommunicator(std::unique_ptr<SharedArena> arena, int rank, int size, int device,
                   DeviceReduce reduce, std::shared_ptr<NcclJob> job);
  // Requires that all posted operations have completed, or that the job has failed. Waits up to
  // 0.5 s until ranks of other processes have closed the memory of this rank. If a rank takes
  // longer, the memory is freed later (SharedArena). After a failure, the destructor instead makes
  // the rank give up, and waits up to about 16 s until the posted work of this rank has ended.
  ~CopyCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isStreamOrdered() const override { return true; }
  bool holdsDevice() const override { return false; }
  // Accepts only the kinds for which mayCopy() (comm/operation.h) returns true.
  Ticket post(std::span<const Operation> group, void* stream) override;
  bool test(Ticket ticket) override;
  void probe() override;

  void giveUp(const std::string& why) noexcept override;
  int64_t busySince() const override { return 0; }

 private:
  // Says where the parts of all ranks lie, in elements. The parts are in the send buffer of a
  // reduce-scatter, in the receive buffer of an allgather, and in both buffers of an allreduce.
  struct Parts {
    int64_t stride;  // distance between the starts of two successive parts
    int64_t count;   // length of one part
    int64_t total;   // length of all parts; the last parts may be shorter than `count` or empty
    int64_t countOf(int rank) const;
  };
  // A piece of a collective, which fits into one half of the arena.
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
  void push(const Piece& piece, cudaStream_t stream);
  void sum(const Piece& piece, void* to, cudaStream_t stream);
  void pull(const Piece& piece, cudaStream_t stream);
  void copyLocally(void* to, const void* from, int64_t bytes, cudaStream_t stream);
  void add(void* to, const void* from, int64_t bytes);
  void copy(cudaStream_t stream);  // starts the copies that add() has collected
  void arriveAndWait(cudaStream_t stream) { barrier_.arriveAndWait(stream, ++number_); }
  cudaError_t createReleaseStream();
  std::string failure();         // the argument of giveUp(); empty: giveUp() was not called
  void releaseWaits() noexcept;  // ends the waits for flags in the streams of this rank
  bool mayReleaseWaits(std::chrono::steady_clock::duration since) const;
  bool waitForStreams();  // returns false if the streams do not end

  std::unique_ptr<SharedArena> arena_;
  int rank_;
  int size_;
  int device_;
  DeviceReduce reduce_;
  std::shared_ptr<NcclJob> job_;
  FaultText fault_;
  StreamBarrier barrier_;
  std::vector<uint32_t*> mine_;  // flags that other ranks write
  std::vector<void*> to_;        // destinations of the collected copies
  std::vector<const void*> from_;
  std::vector<size_t> bytes_;
  std::vector<const void*> sources_;  // the inputs of a sum, in rank order
  std::mutex mutex_;  // held during a post, which may block while the queue of the stream is full
  std::atomic<uint32_t> number_{0};  // number of the latest barrier
  std::atomic<bool> is_posting_{false};
  int half_ = 0;
  Ticket next_ = 0;
  std::mutex failure_mutex_;  // guards the next two members; not held during CUDA calls
  std::string failure_;
  std::thread release_thread_;
  cudaEvent_t latest_post_ = nullptr;      // recorded after the latest post
  cudaStream_t release_stream_ = nullptr;  // for releaseWaits()
};

}  // namespace heddle::comm::nccl
