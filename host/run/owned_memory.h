#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/device/device.h"

namespace heddle::host {

// Finds tensors in the memory of another device. Remembers blocks of memory that belong to the
// device of the run, so that a repeated run asks the device nothing and allocates nothing. If such
// a block is freed and its addresses are given to another device, the object does not notice.
class OwnedMemory {
 public:
  explicit OwnedMemory(Device& device) : device_(device) {
    const int64_t block_bytes = device.ownedBlockBytes();
    if (block_bytes == 0) return;
    shift_ = std::countr_zero(static_cast<uint64_t>(block_bytes));
    known_.assign(kBlocks, 0);
  }
  // Throws UserError if the memory at `data` belongs to another device. The message names the
  // tensor and both devices. `kind` and `position` describe the tensor, as in "input 2".
  void check(const void* data, const char* kind, int32_t position, const std::string& name) {
    if (known_.empty() || data == nullptr) return;
    const uintptr_t block = reinterpret_cast<uintptr_t>(data) >> shift_;
    if (known_[block % kBlocks] == block) return;
    ask(data, kind, position, name);
    known_[block % kBlocks] = block;
  }

 private:
  static constexpr size_t kBlocks = 1024;
  void ask(const void* data, const char* kind, int32_t position, const std::string& name) const;

  Device& device_;
  int shift_ = 0;  // an address shifted by this number is the number of its block
  std::vector<uintptr_t>
      known_;  // block numbers, by number modulo kBlocks; empty: nothing to check
};

}  // namespace heddle::host
