#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace heddle::host {

// What makeCppCompiler's kernels are (codegen/kernel.h).
using CpuKernelFunction = void (*)(const void* args, int64_t tile_begin, int64_t tile_end);

// Runs the tiles of kernels on the calling thread together with a pool's. Several threads may call
// at once and share the pool. Allocates nothing in a steady state.
class TilePool {
 public:
  explicit TilePool(int threads);
  ~TilePool();

  int threads() const { return threads_; }
  // Returns when all tiles are done; throws what a tile threw.
  void run(CpuKernelFunction function, const void* args, int64_t tiles);

 private:
  struct Job;
  struct Helper;
  template <class T>
  struct Recycler;

  Job* take();
  void giveBack(Job* job);  // one of its holders is through
  void* takeBlock(size_t bytes);
  void giveBackBlock(void* block, size_t bytes) noexcept;

  const int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> idle_jobs_;
  std::vector<void*> blocks_;  // for asio's queue, all of one size
  boost::asio::thread_pool pool_;
};

}  // namespace heddle::host
