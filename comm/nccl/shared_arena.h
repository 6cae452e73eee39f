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

// The device memory of the copy channels of a team. Each GPU has one block, which every rank can
// access. A block has two halves, which successive pieces use alternately. Each half has one area
// that the other ranks write and one that they read. The block ends with one flag per rank of the
// team:
//   in   kPieceBytes: one part from each rank
//   out  kPieceBytes / ranks: one part
// Ranks of one process share the blocks. Ranks of other processes open them by CUDA IPC handles. A
// block may be freed only after all ranks that opened it have closed it, which they report in the
// CopyChannelTable. A block that is not closed in time is freed when its GPU next creates or
// destroys a copy channel.
class SharedArena {
 public:
#ifdef HEDDLE_COPY_CHANNEL_PIECE_BYTES  // set by tests, which need many small pieces
  static constexpr size_t kPieceBytes = HEDDLE_COPY_CHANNEL_PIECE_BYTES;
#else
  static constexpr size_t kPieceBytes = size_t{64} << 20;
#endif

  // Allocates the block of this rank. Throws UserError if this GPU or its memory does not allow it.
  SharedArena(int device, int size, std::shared_ptr<CopyChannelMember> member);
  // Closes as close(), without waiting.
  ~SharedArena();

  // Returns the message for the other ranks. After it is taken, the block is kept until
  // setReached().
  const std::string& offer();
  std::byte* own() const { return block_->data(); }
  // Opens the blocks of all ranks. `offers` are in team order; `rank` is this rank. Returns an
  // empty string, or why a block cannot be opened; then this rank has opened none.
  std::string reach(const std::vector<std::string>& offers, int rank);
  // Takes the offers of the team and what reach() returned on each rank, which shows who has opened
  // the block of this rank.
  void setReached(const std::vector<std::string>& offers, const std::vector<std::string>& reasons);

  std::byte* in(int rank, int half, int part) const;
  std::byte* out(int rank, int half) const;
  // Returns the flag that `from` stores on `rank`.
  uint32_t* flag(int rank, int from) const;
  size_t partBytes() const { return part_bytes_; }

  // Closes the opened blocks. Requires that all posted work of this rank has completed. Waits up to
  // 0.5 s for other ranks to close the block of this rank, unless the job has failed.
  void close(const FaultText& fault);
  // Keeps all memory until the process ends, because posted work may still run.
  void leave();

 private:
  struct Opened {  // a block of a rank in another process
    int index;
    int block;
    void* base;
  };
  std::byte* base(int rank) const { return bases_[static_cast<size_t>(rank)]; }
  void reachPeer(const std::string& offer, int peer);
  void closePeers(bool tell);
  bool isFree() const;  // no other rank has the block open

  int device_;
  int size_;
  size_t part_bytes_;  // a multiple of 256
  std::shared_ptr<CopyChannelMember> member_;
  std::shared_ptr<DeviceBlock> block_;
  int number_ = -1;  // number of the block in the table
  int openers_ = 0;  // how many other processes opened it; kUnknown
  std::string offer_;
  std::vector<std::byte*> bases_;
  std::vector<Opened> opened_;
  std::vector<std::shared_ptr<DeviceBlock>> shared_;  // blocks of ranks in this process
};

}  // namespace heddle::comm::nccl
