#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "host/device/cpu/cpu_stream.h"
#include "host/device/device.h"

namespace heddle::host {

// Maps handles to streams.
class StreamTable {
 public:
  virtual ~StreamTable() = default;
  // Returns the stream of a handle; nullptr is the default stream of the device.
  virtual CpuStream& stream(Stream handle) = 0;
};

// The memory pool of a CPU device. A freed block can be used again for later allocations of the
// same size class (classOf()). An allocation on the stream on which the block was freed may get the
// block at once. An allocation on a different stream may get the block only when the first stream
// has completed all work that was enqueued there before the free.
class CpuAllocator : public Allocator {
 public:
  // - `limit`: the largest number of bytes that the pool may hold; 0: no limit.
  // - `poison`: true: the pool fills new memory and freed memory with 0xFF bytes. It fills freed
  //   memory in stream order.
  CpuAllocator(StreamTable& streams, int64_t limit, bool poison);
  // Requires that all work on the device is done.
  ~CpuAllocator() override;

  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override;

 private:
  struct Block {
    void* memory;
    StreamPoint freed;  // point at which the block was freed
  };

  // Returns the size of the blocks that serve allocations of `bytes` bytes.
  static int64_t classOf(int64_t bytes);
  // Removes a free block that `stream` may use now, and returns it. Returns nullptr if there is
  // none.
  void* reuse(int64_t size, const CpuStream& stream);
  // Returns a new block from the system, or nullptr if the system has no memory or the block would
  // exceed the limit.
  void* fresh(int64_t size);
  // Gives free blocks back to the system, except blocks that a stream may still access. Returns
  // whether it gave back any block.
  bool trim();
  // Returns the points at which the free blocks were freed.
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
