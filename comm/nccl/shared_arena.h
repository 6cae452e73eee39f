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

// The memory of the copy channels of a team: a block on each GPU, and every rank reaches all of
// them. A block holds twice (calls alternate between the two) what peers bring and what they fetch,
// and a number for each of the team:
//   in   kPieceBytes, one after the other a part from each rank
//   out  kPieceBytes / ranks, one part
// Ranks of one process share the blocks. Others open them by CUDA's inter-process handles, and a
// block may be freed only when all who have opened it have closed it, which they tell in the
// CopyChannelTable: one that is not closed in time is freed when its GPU next makes or ends a copy
// channel.
class SharedArena {
 public:
#ifdef HEDDLE_COPY_CHANNEL_PIECE_BYTES  // of tests, for which many pieces must be cheap
  static constexpr size_t kPieceBytes = HEDDLE_COPY_CHANNEL_PIECE_BYTES;
#else
  static constexpr size_t kPieceBytes = size_t{64} << 20;
#endif

  // Makes this rank's block. UserError when this GPU or its memory does not allow it.
  SharedArena(int device, int size, std::shared_ptr<CopyChannelMember> seat);
  // As close({}) without waiting.
  ~SharedArena();

  // The first message to the others. Once it is asked for, the block is kept until setReached().
  const std::string& offer();
  std::byte* own() const { return block_->data(); }
  // Of the team's ranks in order; `rank` is this one. Empty, or why not all of them can be reached:
  // then this rank has opened none.
  std::string reach(const std::vector<std::string>& offers, int rank);
  // The offers, and what reach() then said on each rank of the team: who has opened the block.
  void setReached(const std::vector<std::string>& offers, const std::vector<std::string>& reasons);

  std::byte* in(int rank, int turn, int part) const;
  std::byte* out(int rank, int turn) const;
  // Where `from` stores its number for `rank`.
  uint32_t* flag(int rank, int from) const;
  size_t partBytes() const { return part_bytes_; }

  // Nothing that this rank has posted is under way any more. Closes what it has opened, and waits a
  // moment for the others to do so, unless the job has failed.
  void close(const FaultText& fault);
  // Something may be: all stays until the process ends.
  void leave();

 private:
  struct Opened {  // of a peer in another process
    int seat;
    int block;
    void* base;
  };
  std::byte* base(int rank) const { return bases_[static_cast<size_t>(rank)]; }
  void reachPeer(const std::string& offer, int peer);
  void closePeers(bool tell);
  bool isFree() const;  // nobody else has the block open

  int device_;
  int size_;
  size_t part_bytes_;  // a multiple of 256
  std::shared_ptr<CopyChannelMember> seat_;
  std::shared_ptr<DeviceBlock> block_;
  int number_ = -1;  // of the block in the table
  int openers_ = 0;  // of other processes; kUnknown
  std::string offer_;
  std::vector<std::byte*> bases_;
  std::vector<Opened> opened_;
  std::vector<std::shared_ptr<DeviceBlock>> shared_;  // of peers in this process
};

}  // namespace heddle::comm::nccl
