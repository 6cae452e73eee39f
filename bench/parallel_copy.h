#pragma once

#include <cstring>
#include <vector>

#include "host/device/cpu/tile_pool.h"

namespace heddle::bench {

// Copies from one buffer to another with memcpy, on several threads. There is one part of the
// buffers per thread.
class ParallelCopy {
 public:
  ParallelCopy(size_t bytes, int threads)
      : pool_(threads), part_(bytes / static_cast<size_t>(threads)), from_(bytes, 1), to_(bytes) {}

  void operator()() {
    const auto copy = [](const void* argument, int64_t begin, int64_t end) {
      auto& self = *const_cast<ParallelCopy*>(static_cast<const ParallelCopy*>(argument));
      for (int64_t i = begin; i < end; ++i) {
        const size_t first = static_cast<size_t>(i) * self.part_;
        std::memcpy(&self.to_[first], &self.from_[first], self.part_);
      }
    };
    pool_.run(copy, this, pool_.threads());
  }

  // Returns the bytes that a call reads and writes.
  double bytes() const { return 2.0 * static_cast<double>(part_) * pool_.threads(); }

 private:
  host::TilePool pool_;
  size_t part_;
  std::vector<char> from_;
  std::vector<char> to_;
};

}  // namespace heddle::bench
