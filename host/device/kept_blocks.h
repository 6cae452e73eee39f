#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace heddle::host {

// Keeps small freed blocks of device memory, so that a later allocation on the same stream reuses
// them. This takes less host time than an allocation by the driver. Reuse on the same stream is
// safe, because the stream executes the work of the new owner after the work of the old owner.
//
// A parameter `stream` is the id of a stream. No later stream of the process gets the same id, even
// after the stream is destroyed. A stream handle (host/device/device.h), in contrast, may be reused
// for a new stream.
//
// Limits: a kept block has at most kMostBytes, and all kept blocks together have at most kMostTotal
// bytes.
// Thread-safe.
class KeptBlocks {
 public:
  static constexpr int64_t kMostBytes = int64_t{1} << 20;
  static constexpr int64_t kMostTotal = int64_t{64} << 20;

  // Returns the size of the block that the caller must allocate for `bytes` bytes. Allocations with
  // the same rounded size can use each other's blocks.
  static int64_t rounded(int64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }
  // Removes and returns a block of rounded(bytes) bytes that was kept for the stream. Returns
  // nullptr if there is none.
  void* take(int64_t bytes, uint64_t stream);
  // Keeps a block of rounded(bytes) bytes for the stream. Returns false if the limits forbid this.
  // In this case, the caller must free the block.
  bool keep(void* memory, int64_t bytes, uint64_t stream);
  // Removes all blocks of a stream and returns them. The caller must free them.
  std::vector<void*> drop(uint64_t stream);
  // Removes all blocks and returns them. The caller must free them.
  std::vector<void*> dropAll();
  // Returns the number of bytes of all kept blocks.
  int64_t heldBytes();

 private:
  static constexpr int64_t kUnit = 512;

  std::mutex mutex_;  // guards all members below
  // The blocks of each stream and rounded size. Empty lists are kept, so that a repeated run
  // allocates no heap memory.
  std::map<std::pair<uint64_t, int64_t>, std::vector<void*>> blocks_;
  int64_t held_ = 0;
};

}  // namespace heddle::host
