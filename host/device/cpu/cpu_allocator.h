#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "host/device/cpu/cpu_stream.h"
#include "host/device/device.h"

namespace heddle::host {

// Finds the stream of a handle.
class StreamTable {
 public:
  virtual ~StreamTable() = default;
  virtual CpuStream& stream(Stream handle) = 0;
};

// The memory pool of a CPU device. A freed block is used for later allocations of the same size
// class. The stream on which the block was freed may use it at once. Another stream may use it
// after the first stream has passed the point at which the block was freed.
class CpuAllocator : public Allocator {
 public:
  // `limit` is the number of bytes that the pool may hold (0: no limit). If `poison` is set, new
  // memory and freed memory are filled with 0xFF. Freed memory is filled in stream order.
  CpuAllocator(StreamTable& streams, int64_t limit, bool poison);
  // Requires that all work is done.
  ~CpuAllocator() override;

  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override;

 private:
  struct Block {
    void* memory;
    StreamPoint freed;
  };

  static int64_t classOf(int64_t bytes);
  void* reuse(int64_t size, const CpuStream& stream);
  void* fresh(int64_t size);
  // Gives memory back to the system: all free blocks that no stream can still be using. Returns
  // whether there were any.
  bool trim();
  std::vector<StreamPoint> freePoints();

  StreamTable& streams_;
  const int64_t limit_;
  const bool poison_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<Block>> free_;  // by size class
  int64_t reserved_ = 0;                        // bytes taken from the system
  int64_t cached_ = 0;                          // bytes in free_, part of reserved_
};

}  // namespace heddle::host
