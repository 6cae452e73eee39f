#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "host/device/cpu/cpu_stream.h"
#include "host/device/device.h"

namespace heddle::host {

// Turns a handle into the device's stream.
class StreamTable {
 public:
  virtual ~StreamTable() = default;
  virtual CpuStream& stream(Stream handle) = 0;
};

// The pool of a CPU device. A block that was freed on a stream serves a later allocation of its
// size class: on the same stream at once, on another when the first has come to the place where it
// was freed.
class CpuAllocator : public Allocator {
 public:
  // `poison`: fresh and freed memory is filled with 0xFF, the freed in stream order.
  CpuAllocator(StreamTable& streams, int64_t limit, bool poison);
  // All work is done.
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
  // Gives blocks of passed points back to the system; true when some were.
  bool trim();
  std::vector<StreamPoint> freePoints();

  StreamTable& streams_;
  const int64_t limit_;
  const bool poison_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<Block>> free_;  // by size class
  int64_t reserved_ = 0;                        // from the system
  int64_t cached_ = 0;                          // of it, in free_
};

}  // namespace heddle::host
