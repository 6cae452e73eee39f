#pragma once

#include <nccl.h>

#include <atomic>
#include <memory>

#include "comm/communicator.h"

namespace heddle::comm::nccl {

// A team on NCCL, one GPU a rank, stream-ordered.
//
// What differs from comm/communicator.h: NCCL chooses the order of a reduction by algorithm and
// size. A result is the same on every rank of one run, but not always that of rank order, and bf16
// may be rounded at each step. A minimum or maximum need not keep a NaN. NCCL does not check that
// ranks post the same operation.
class NcclCommunicator : public Communicator {
 public:
  // Collective over the ranks of `bootstrap`, a host-memory communicator of the same team which is
  // used only here. `aborted` is shared by the rank's communicators and its World.
  NcclCommunicator(Communicator& bootstrap, int device,
                   std::shared_ptr<const std::atomic<bool>> aborted);
  // Lets enqueued operations finish, or gives them up when the job was aborted.
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isStreamOrdered() const override { return true; }
  Ticket post(std::span<const Operation> group, void* stream) override;
  // Only tells an error NCCL has met on its own; completion is the stream's business.
  bool test(Ticket ticket) override;

 private:
  void initialise(Communicator& bootstrap);
  void enqueue(const Operation& operation, cudaStream_t stream);
  void close() noexcept;

  int rank_;
  int size_;
  int device_;
  std::shared_ptr<const std::atomic<bool>> aborted_;
  ncclComm_t comm_ = nullptr;
  Ticket next_ = 0;
};

}  // namespace heddle::comm::nccl
