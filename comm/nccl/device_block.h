#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace heddle::comm::nccl {

// Memory of one GPU, freed with the last reference. Ranks that are threads of one process find the
// blocks of each other by number.
class DeviceBlock {
 public:
  // Allocates a block. The last `zeros` bytes are 0.
  static std::shared_ptr<DeviceBlock> make(int device, size_t bytes, size_t zeros);
  // Returns nullptr if the block has been freed.
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
