#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

// Runs CUDA kernels on the host.
// - The threads of a block are fibers. They run in turn, each up to its next barrier, in an order
//   that depends on a seed.
// - Blocks run one after the other.
// - All threads of a block must reach every barrier. All threads of a warp must reach every barrier
//   of the warp, and end together. Otherwise the run aborts. The number of threads of a block must
//   be a power of two.
// - Shuffles need all 32 lanes of a warp.
namespace heddle::simt {

struct Dim {
  unsigned x = 0;
};

class Grid {
 public:
  // Calls entry() for every thread of every block. Blocks have the numbers 0 to `blocks` - 1 and,
  // in the second dimension, 0 to `rows` - 1.
  void run(int64_t blocks, int threads, uint64_t seed, const std::function<void()>& entry,
           int rows = 1) {
    entry_ = &entry;
    blocks_ = blocks;
    threads_ = threads;
    for (row_ = 0; row_ < rows; ++row_) {
      for (block_ = 0; block_ < blocks; ++block_) runBlock(seed);
    }
  }

  unsigned thread() const { return static_cast<unsigned>(current_); }
  unsigned block() const { return static_cast<unsigned>(block_); }
  int row() const { return row_; }
  // A number that differs for all blocks of all runs.
  uint64_t serial() const { return serial_; }
  unsigned threads() const { return static_cast<unsigned>(threads_); }
  unsigned blocks() const { return static_cast<unsigned>(blocks_); }

  void barrier() { wait(true); }
  // Gives `value` to other threads, and returns the value of thread `from`. There are two buffers,
  // because one thread may begin the next exchange while another one still reads.
  template <class T>
  T exchange(T value, int from) {
    const size_t phase = fibers_[static_cast<size_t>(current_)]->barriers % 2;
    std::memcpy(&slots_[phase][static_cast<size_t>(current_)], &value, sizeof(T));
    wait(false);
    T got;
    std::memcpy(&got, &slots_[phase][static_cast<size_t>(from)], sizeof(T));
    return got;
  }
  template <class T>
  unsigned match(T value) {
    const size_t phase = fibers_[static_cast<size_t>(current_)]->barriers % 2;
    std::memcpy(&slots_[phase][static_cast<size_t>(current_)], &value, sizeof(T));
    wait(false);
    unsigned peers = 0;
    for (int lane = 0; lane < 32; ++lane) {
      T other;
      std::memcpy(&other, &slots_[phase][static_cast<size_t>(current_ / 32 * 32 + lane)],
                  sizeof(T));
      if (other == value) peers |= 1u << lane;
    }
    return peers;
  }

 private:
  static constexpr size_t kStack = 64 * 1024;
  struct Fiber {
    ucontext_t beginning;
    std::jmp_buf place;  // where the fiber waits
    bool begun = false;
    std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStack);
    uint64_t barriers = 0;
    bool needs_block = false;  // waits for all threads of the block, not only for its warp
    bool done = false;
  };

  void wait(bool needs_block) {
    Fiber& fiber = *fibers_[static_cast<size_t>(current_)];
    ++fiber.barriers;
    fiber.needs_block = needs_block;
    suspend(fiber);
  }

  // Runs the fiber until it calls suspend(). swapcontext() would be simpler, but it makes two
  // system calls for the signal mask, which take most of the time of a switch.
  void resume(Fiber& fiber) {
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.beginning);
  }
  void suspend(Fiber& fiber) {
    if (_setjmp(fiber.place) == 0) _longjmp(scheduler_, 1);
  }
  static void start();

  void addFiber() {
    Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
    getcontext(&fiber.beginning);
    fiber.beginning.uc_stack.ss_sp = fiber.stack.get();
    fiber.beginning.uc_stack.ss_size = kStack;
    makecontext(&fiber.beginning, start, 0);
  }

  void runBlock(uint64_t seed) {
    while (fibers_.size() < static_cast<size_t>(threads_)) addFiber();
    for (auto& slots : slots_) slots.resize(static_cast<size_t>(threads_));
    for (int t = 0; t < threads_; ++t) {
      Fiber& fiber = *fibers_[static_cast<size_t>(t)];
      fiber.barriers = 0;
      fiber.done = false;
    }
    ++serial_;
    uint64_t round = 0;
    for (bool left = true; left; ++round) left = runRound(seed, round);
  }

  // Runs each thread to its next barrier or to its end. Returns whether a thread is left.
  bool runRound(uint64_t seed, uint64_t round) {
    // The number of threads is a power of two, so an odd step visits every thread once.
    const uint64_t step = 2 * (seed * 7919 + round % 5) + 1;
    for (int i = 0; i < threads_; ++i) {
      current_ = static_cast<int>((static_cast<uint64_t>(i) * step + seed) %
                                  static_cast<uint64_t>(threads_));
      Fiber& fiber = *fibers_[static_cast<size_t>(current_)];
      if (!fiber.done) resume(fiber);
    }
    return isThreadLeft();
  }

  // Returns whether a thread has not ended. Aborts if such a thread would wait at a barrier
  // forever.
  bool isThreadLeft() const {
    int done = 0;
    bool needs_block = false;
    for (int t = 0; t < threads_; ++t) {
      const Fiber& fiber = *fibers_[static_cast<size_t>(t)];
      if (fiber.done != fibers_[static_cast<size_t>(t / 32 * 32)]->done) std::abort();
      if (fiber.done) ++done;
      needs_block = needs_block || (!fiber.done && fiber.needs_block);
    }
    if (done != 0 && needs_block) std::abort();
    return done < threads_;
  }

  const std::function<void()>* entry_ = nullptr;
  int64_t blocks_ = 0;
  int64_t block_ = 0;
  int row_ = 0;
  uint64_t serial_ = 0;
  int threads_ = 0;
  int current_ = 0;
  std::jmp_buf scheduler_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<uint64_t> slots_[2];
};

inline Grid& grid() {
  static thread_local Grid instance;
  return instance;
}

// A fiber runs one thread of each block.
inline void Grid::start() {
  Grid& self = grid();
  Fiber& fiber = *self.fibers_[static_cast<size_t>(self.current_)];
  for (;;) {
    (*self.entry_)();
    fiber.done = true;
    self.suspend(fiber);
  }
}

}  // namespace heddle::simt
