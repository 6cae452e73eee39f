#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/copy_channel_table.h"
#include "comm/nccl/device_block.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// The device memory of one copy channel (Carrier::copy_channel in comm/communicator.h). Each GPU
// of the team has one block, which every rank of the team can access. A block has two halves,
// which successive pieces of the collectives (comm/nccl/copy_communicator.h) use alternately. Each
// half consists of two areas: the other ranks write `in` and read `out`. At the end of the block,
// there is one flag per rank of the team for the StreamBarrier (comm/nccl/stream_barrier.h).
//   in   at most kPieceBytes: one part from each rank of the team (partBytes())
//   out  one part of this rank
// Ranks of one process use the same pointer to a block. Ranks of other processes open the block by
// its CUDA IPC handle, and report in the CopyChannelTable (comm/nccl/copy_channel_table.h) when
// they have closed it. The owner must not free a block that another rank has open. close() waits at
// most 0.5 s for the other ranks. If some rank has not closed the block by then, the owner keeps
// the block. It frees the block when it later creates or destroys a copy channel, if all ranks have
// closed the block by that time.
class SharedArena {
 public:
#ifdef HEDDLE_COPY_CHANNEL_PIECE_BYTES  // tests set it, because they need many small pieces
  static constexpr size_t kPieceBytes = HEDDLE_COPY_CHANNEL_PIECE_BYTES;
#else
  static constexpr size_t kPieceBytes = size_t{64} << 20;
#endif

  // Allocates the block of this rank. Throws UserError if this fails, for example because the
  // driver has no stream memory operations or the GPU has too little free memory.
  SharedArena(int device, int size, std::shared_ptr<CopyChannelMember> member);
  // Closes the opened blocks as close() does, but does not wait. Frees the block of this rank if no
  // other rank has it open. Does nothing after leave().
  ~SharedArena();

  // Returns the offer: the message by which the other ranks find the block of this rank. If
  // setReached() is not called after offer(), the block is never freed, because a rank may have
  // opened it.
  const std::string& offer();
  std::byte* own() const { return block_->data(); }
  // Opens the blocks of all ranks of the team. `offers` are in team order, and `rank` is the
  // position of this rank in the team. Returns an empty string on success. Otherwise closes all
  // opened blocks and returns the reason.
  std::string reach(const std::vector<std::string>& offers, int rank);
  // Records how many ranks of other processes have opened the block of this rank. `offers` are the
  // offers of the team, and `reasons` are the results of reach() on each rank, both in team order.
  void setReached(const std::vector<std::string>& offers, const std::vector<std::string>& reasons);

  // These functions return addresses in half `half` of the block of `rank`. in() returns the
  // address of the part that rank `part` writes to area `in`. out() returns the address of area
  // `out`.
  std::byte* in(int rank, int half, int part) const;
  std::byte* out(int rank, int half) const;
  // Returns the flag in the block of `rank` that `from` writes.
  uint32_t* flag(int rank, int from) const;
  size_t partBytes() const { return part_bytes_; }

  // Closes the opened blocks. Requires that all posted work of this rank has completed. Waits up to
  // 0.5 s until the ranks of other processes have closed the block of this rank. Does not wait if
  // the job has failed.
  void close(const FaultText& fault);
  // Keeps the block of this rank and all opened blocks until the process ends. Call leave() instead
  // of close() if posted work may still run.
  void leave();

 private:
  struct Opened {  // a block of a rank in another process
    int index;     // of the owner, in the CopyChannelTable
    int block;     // number of the block in the CopyChannelTable
    void* base;
  };
  std::byte* base(int rank) const { return bases_[static_cast<size_t>(rank)]; }
  void reachPeer(const std::string& offer, int peer);
  void closePeers(bool tell);
  bool isFree() const;  // no other rank has the block of this rank open

  int device_;
  int size_;
  size_t part_bytes_;  // a multiple of 256
  std::shared_ptr<CopyChannelMember> member_;
  std::shared_ptr<DeviceBlock> block_;
  int number_ = -1;  // number of the block in the CopyChannelTable
  int openers_ = 0;  // number of ranks in other processes that opened the block; or kUnknown
  std::string offer_;
  std::vector<std::byte*> bases_;
  std::vector<Opened> opened_;
  std::vector<std::shared_ptr<DeviceBlock>> shared_;  // blocks of ranks in this process
};

}  // namespace heddle::comm::nccl
