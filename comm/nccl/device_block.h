#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heddle::comm::nccl {

// A block of memory of one GPU. The destructor frees the memory. Each block has a number, by which
// other ranks in the same process find it.
class DeviceBlock {
 public:
  // Allocates a block of `bytes` bytes and sets the last `zeros` bytes to 0.
  static std::shared_ptr<DeviceBlock> make(int device, size_t bytes, size_t zeros);
  // Returns the block whose number is `number`, or nullptr if this block has been freed.
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
