#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heddle::comm::nccl {

// A block of memory of one GPU. The destruction of the last reference frees the block. Ranks that
// are threads of one process find each other's blocks by number.
class DeviceBlock {
 public:
  // Allocates a block of `bytes` bytes and sets the last `zeros` bytes to 0.
  static std::shared_ptr<DeviceBlock> make(int device, size_t bytes, size_t zeros);
  // Returns the block with this number, or nullptr if the block has been freed.
  static std::shared_ptr<DeviceBlock> find(uint64_t number);
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  uint64_t number() const { return number_; }

 private:
  DeviceBlock(int device, size_t bytes, size_t zeros);

  int device_;
  void* data_ = nullptr;
  uint64_t number_ = 0;
};

}  // namespace heddle::comm::nccl
