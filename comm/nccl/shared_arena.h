#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm::nccl {

// Memory of one GPU, freed with the last reference.
class DeviceBlock {
 public:
  DeviceBlock(int device, size_t bytes);  // zeroed
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  int device_;
  void* data_ = nullptr;
};

// The memory of the lanes of a team: a block on each GPU, and every rank reaches all of them. A
// block holds twice (calls alternate between the two) what peers bring and what they fetch, and a
// number for each of the team:
//   in   kPieceBytes, one after the other a part from each rank
//   out  kPieceBytes / ranks, one part
// Ranks of one process share the blocks, of others they are opened by CUDA's inter-process handles.
class SharedArena {
 public:
  static constexpr size_t kPieceBytes = size_t{64} << 20;

  // Makes this rank's block and the first message to the others: `offer`. No block, and why, when
  // this GPU or its memory does not allow it.
  SharedArena(int device, int size);
  ~SharedArena();

  const std::string& offer() const { return offer_; }
  std::byte* own() const { return block_->data(); }
  // Of the team's ranks in order; `rank` is this one. Empty, or why not all of them can be reached.
  std::string reach(const std::vector<std::string>& offers, int rank);

  std::byte* in(int rank, int turn, int part) const;
  std::byte* out(int rank, int turn) const;
  // Where `from` stores its number for `rank`.
  uint32_t* flag(int rank, int from) const;
  size_t partBytes() const { return part_bytes_; }
  // Whether all ranks are threads of this process: then nothing is freed under a peer's feet.
  bool isOneProcess() const { return opened_.empty(); }
  // Somebody may still read or write: the blocks stay until the process ends.
  void leave();

 private:
  std::byte* base(int rank) const { return bases_[static_cast<size_t>(rank)]; }

  int device_;
  int size_;
  size_t part_bytes_;  // a multiple of 256
  std::shared_ptr<DeviceBlock> block_;
  std::string offer_;
  std::vector<std::byte*> bases_;
  std::vector<std::shared_ptr<DeviceBlock>> shared_;  // of peers in this process
  std::vector<void*> opened_;
};

}  // namespace heddle::comm::nccl
