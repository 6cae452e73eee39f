#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle::host {

// An entry point of the kernels that makeCppCompiler() compiles (codegen/kernel.h).
using CpuKernelFunction = void (*)(const void* args, int64_t tile_begin, int64_t tile_end);

// Runs the tiles of kernels on the calling thread and on the threads of a pool. Several threads may
// call run() at the same time; they share the pool. Once it has enough buffers, run() allocates no
// memory.
class TilePool {
 public:
  // `threads` includes the calling thread. Throws UserError if the system does not start them.
  explicit TilePool(int threads);
  ~TilePool();

  int threads() const { return threads_; }
  // Runs all tiles and returns when they are done. If a tile throws, tiles that have not begun are
  // skipped, and run() throws the first exception.
  void run(CpuKernelFunction function, const void* args, int64_t tiles);

 private:
  struct Job;
  struct Helper;
  template <class T>
  struct Recycler;

  Job* take();
  void giveBack(Job* job);  // each holder of a job calls this; after the last call the job is idle
  void* takeBlock(size_t bytes);
  void giveBackBlock(void* block, size_t bytes) noexcept;
  void stop() noexcept;  // returns when the queue is empty and all threads have ended

  const int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> idle_jobs_;
  std::vector<void*> blocks_;  // free memory for asio's queue, all blocks of one size
  // asio::thread_pool would wait for ever if the system did not start all of its threads.
  boost::asio::io_context queue_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keeps_running_;
  std::vector<std::thread> workers_;
};

}  // namespace heddle::host
