#include "host/device/cpu/tile_pool.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>
#include <new>

#include "ir/system/start_thread.h"

namespace heddle::host {
namespace {

// The tiles of a job are split into at least this number of parts per thread, if there are enough
// tiles. Several parts per thread balance the load if tiles have different costs.
constexpr int64_t kPartsPerThread = 4;
// The size of the blocks that the pool keeps for asio's queue, in bytes. A block is large enough
// for the queue entry of one Helper. The pool does not keep blocks of more bytes.
constexpr size_t kBlockBytes = 256;

}  // namespace

// The state of one call of run(). The calling thread and the helpers take parts of the tiles.
struct TilePool::Job {
  CpuKernelFunction function = nullptr;
  const void* args = nullptr;
  int64_t tiles = 0;
  int64_t part = 1;                  // tiles per part
  std::atomic<int64_t> next{0};      // first tile that no thread has taken
  std::atomic<int64_t> finished{0};  // number of finished tiles
  std::atomic<int> holders{0};       // 1 for the thread in run(), plus the unfinished helpers
  std::atomic<bool> failed{false};
  // Only the thread that sets `failed` writes the error, and does so before it adds to `finished`.
  // The thread that waits for `finished` may therefore read the error without a lock.
  std::exception_ptr error;

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(part, std::memory_order_relaxed);
      if (begin >= tiles) return;
      const int64_t end = std::min(tiles, begin + part);
      try {
        if (!failed.load(std::memory_order_relaxed)) function(args, begin, end);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
      const int64_t before = finished.fetch_add(end - begin, std::memory_order_acq_rel);
      if (before + (end - begin) == tiles) finished.notify_all();
    }
  }

  void awaitAll() {
    int64_t seen = finished.load(std::memory_order_acquire);
    while (seen < tiles) {
      finished.wait(seen, std::memory_order_acquire);
      seen = finished.load(std::memory_order_acquire);
    }
  }
};

// The allocator of asio's queue. It uses blocks that the pool keeps, instead of heap memory.
template <class T>
struct TilePool::Recycler {
  using value_type = T;
  TilePool* pool;
  explicit Recycler(TilePool* owner) : pool(owner) {}
  template <class U>
  explicit(false) Recycler(const Recycler<U>& other) : pool(other.pool) {}
  T* allocate(size_t n) { return static_cast<T*>(pool->takeBlock(n * sizeof(T))); }
  void deallocate(T* block, size_t n) noexcept { pool->giveBackBlock(block, n * sizeof(T)); }
  bool operator==(const Recycler& other) const { return pool == other.pool; }
};

// A queue entry: the work of one thread of the pool for a job.
struct TilePool::Helper {
  TilePool* pool;
  Job* job;
  using allocator_type = Recycler<void>;
  allocator_type get_allocator() const noexcept { return allocator_type(pool); }
  void operator()() {
    job->work();
    pool->giveBack(job);
  }
};

TilePool::TilePool(int threads)
    : threads_(std::max(threads, 1)), keeps_running_(queue_.get_executor()) {
  // Reserves memory for all threads, so that push_back() cannot fail. A failed push_back() would
  // destroy a running std::thread, which calls std::terminate().
  workers_.reserve(threads_);
  try {
    for (int i = 1; i < threads_; ++i) {
      workers_.push_back(startThread("the CPU device", [this] { queue_.run(); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

void TilePool::stop() noexcept {
  keeps_running_.reset();
  for (std::thread& worker : workers_) worker.join();
}

TilePool::~TilePool() {
  stop();
  for (void* block : blocks_) ::operator delete(block);
}

void* TilePool::takeBlock(size_t bytes) {
  if (bytes > kBlockBytes) return ::operator new(bytes);
  {
    std::lock_guard lock(mutex_);
    if (!blocks_.empty()) {
      void* block = blocks_.back();
      blocks_.pop_back();
      return block;
    }
  }
  return ::operator new(kBlockBytes);
}

void TilePool::giveBackBlock(void* block, size_t bytes) noexcept {
  if (bytes > kBlockBytes) {
    ::operator delete(block);
    return;
  }
  std::lock_guard lock(mutex_);
  blocks_.push_back(block);
}

TilePool::Job* TilePool::take() {
  std::lock_guard lock(mutex_);
  if (idle_jobs_.empty()) {
    jobs_.push_back(std::make_unique<Job>());
    idle_jobs_.push_back(jobs_.back().get());
  }
  Job* job = idle_jobs_.back();
  idle_jobs_.pop_back();
  return job;
}

void TilePool::giveBack(Job* job) {
  if (job->holders.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  std::lock_guard lock(mutex_);
  idle_jobs_.push_back(job);
}

void TilePool::run(CpuKernelFunction function, const void* args, int64_t tiles) {
  if (tiles <= 0) return;
  if (threads_ == 1 || tiles == 1) {
    function(args, 0, tiles);
    return;
  }
  Job* job = take();
  const int helpers = static_cast<int>(std::min<int64_t>(threads_ - 1, tiles - 1));
  job->function = function;
  job->args = args;
  job->tiles = tiles;
  job->part = std::max<int64_t>(1, tiles / (threads_ * kPartsPerThread));
  job->next = 0;
  job->finished = 0;
  job->failed = false;
  job->error = nullptr;
  job->holders = helpers + 1;
  for (int i = 0; i < helpers; ++i) boost::asio::post(queue_, Helper{this, job});
  job->work();
  // All tiles have been taken now, so a helper that begins later finds no tile. run() therefore
  // waits only for running tiles. It does not wait for helpers that have not begun.
  job->awaitAll();
  const std::exception_ptr error = job->error;
  giveBack(job);
  if (error) std::rethrow_exception(error);
}

}  // namespace heddle::host
