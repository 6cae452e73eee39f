#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle::host {

// An entry point of a generated C++ kernel (codegen::LaunchStage in codegen/kernel.h), or another
// function of this form. Its work is divided into tiles, which can run in parallel. The function
// computes the tiles from `tile_begin` up to, but not including, `tile_end`.
using CpuKernelFunction = void (*)(const void* args, int64_t tile_begin, int64_t tile_end);

// Runs the tiles of functions on the calling thread and on the threads of the pool. Several threads
// may call run() at the same time; they share the pool. After the first runs, run() allocates no
// memory.
class TilePool {
 public:
  // `threads` includes the calling thread. Throws UserError if the system cannot start the threads.
  explicit TilePool(int threads);
  ~TilePool();

  int threads() const { return threads_; }
  // Runs the tiles 0 to `tiles` - 1 of `function` and returns when they are done. If a call of
  // `function` throws, run() starts no further calls of `function`, and rethrows the first
  // exception.
  void run(CpuKernelFunction function, const void* args, int64_t tiles);

 private:
  struct Job;
  struct Helper;
  template <class T>
  struct Recycler;

  Job* take();
  void giveBack(Job* job);  // run() and each helper of the job call this when they are done with it
  void* takeBlock(size_t bytes);
  void giveBackBlock(void* block, size_t bytes) noexcept;
  void stop() noexcept;  // ends all threads, after the queue is empty

  const int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> idle_jobs_;
  std::vector<void*> blocks_;  // free blocks of memory for asio's queue; all have the same size
  // The pool does not use asio::thread_pool, which would wait forever if the system did not start
  // all threads.
  boost::asio::io_context queue_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keeps_running_;
  std::vector<std::thread> workers_;
};

}  // namespace heddle::host
