#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/device/device.h"

namespace heddle::host {

// Finds tensors in the memory of another device of the same kind. Remembers some of the blocks of
// memory (Device::ownedBlockBytes()) that it has already accepted, so that a repeated run usually
// does not query the device. If such a block is freed and its addresses are given to another
// device, the object does not notice.
class OwnedMemory {
 public:
  explicit OwnedMemory(Device& device) : device_(device) {
    const int64_t block_bytes = device.ownedBlockBytes();
    if (block_bytes == 0) return;
    shift_ = std::countr_zero(static_cast<uint64_t>(block_bytes));
    known_.assign(kBlocks, 0);
  }
  // Throws UserError if the memory at `data` belongs to another device (Device::otherOwner()). The
  // message names the tensor and both devices. `kind` and `position` describe the tensor, as in
  // "input 2". Allocates no memory if it does not throw.
  void check(const void* data, const char* kind, int32_t position, const std::string& name) {
    if (known_.empty() || data == nullptr) return;
    const uintptr_t block = reinterpret_cast<uintptr_t>(data) >> shift_;
    // The block number is hashed, so that blocks at regular distances spread over the sets.
    uintptr_t* const entry = &known_[(block * kMixer >> (64 - kSetBits)) * 2];
    if (entry[0] == block || entry[1] == block) return;
    ask(data, kind, position, name);
    entry[1] = entry[0];
    entry[0] = block;
  }

 private:
  static constexpr int kSetBits = 9;
  static constexpr size_t kBlocks = size_t{2} << kSetBits;
  static constexpr uint64_t kMixer = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
  void ask(const void* data, const char* kind, int32_t position, const std::string& name) const;

  Device& device_;
  int shift_ = 0;  // an address shifted right by this number of bits is the number of its block
  // The numbers of accepted blocks. Elements 2 * i and 2 * i + 1 form a set for the blocks with
  // hash i; the first of them was added last. Empty vector: there is nothing to check.
  std::vector<uintptr_t> known_;
};

}  // namespace heddle::host
