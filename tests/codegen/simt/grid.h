#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

// Runs CUDA kernels on the host.
// - The threads of a block are fibers. They run in turn, each up to its next barrier, in an order
//   that depends on a seed.
// - Blocks run one after the other, or several of them run at the same time. In the second case,
//   the grid switches between them. A block runs for a random number of barriers, or until one of
//   its threads waits for another block.
// - All threads of a block must reach every barrier. All threads of a warp must reach every barrier
//   of the warp, and end together. If this is not so, or if all blocks wait for each other, the run
//   throws Stuck. The number of threads of a block must be a power of two.
// - Shuffles need all 32 lanes of a warp.
namespace heddle::simt {

struct Dim {
  unsigned x = 0;
};

struct Stuck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Grid {
 public:
  // Called when the grid switches from the block at place `from` to the block at place `to`
  // (place()). The static variables of a kernel are its shared memory. They exist only once, so the
  // function must save their contents for `from` and restore their contents for `to`.
  using Exchange = std::function<void(int from, int to)>;

  // Calls entry() for every thread of every block. Blocks have the numbers 0 to `blocks` - 1 and,
  // in the second dimension, 0 to `rows` - 1. `at_once` blocks run at the same time.
  void run(int64_t blocks, int threads, uint64_t seed, const std::function<void()>& entry,
           int rows = 1, int at_once = 1, const Exchange& exchange = nullptr) {
    entry_ = &entry;
    exchange_ = &exchange;
    blocks_ = blocks;
    threads_ = threads;
    seed_ = seed;
    rows_ = rows;
    for (row_ = 0; row_ < rows; ++row_) runRow(at_once);
  }

  unsigned thread() const { return static_cast<unsigned>(current_); }
  unsigned block() const { return static_cast<unsigned>(running().number); }
  int row() const { return row_; }
  int rows() const { return rows_; }
  // The place of the running block. Blocks that run at the same time have different places, from 0
  // to `at_once` - 1.
  int place() const { return place_; }
  // A number that differs for all blocks of all runs.
  uint64_t serial() const { return running().serial; }
  unsigned threads() const { return static_cast<unsigned>(threads_); }
  unsigned blocks() const { return static_cast<unsigned>(blocks_); }

  void barrier() { wait(true); }
  // Ends the run: run() throws Stuck.
  [[noreturn]] void fail() {
    has_failed_ = true;
    _longjmp(scheduler_, 1);
  }
  // Waits until ready() returns true. Other blocks run in the meantime.
  template <class Ready>
  void await(Ready&& ready) {
    Fiber& fiber = self();
    while (!ready()) {
      fiber.polls = true;
      suspend(fiber);
    }
    fiber.polls = false;
    has_advanced_ = true;
  }
  // Gives `value` to the other threads of the warp, and returns the value of thread `from` of the
  // block. There are two buffers, because one thread may begin the next exchange while another one
  // still reads.
  template <class T>
  T exchange(T value, int from) {
    std::vector<uint64_t>& slots = running().slots[self().barriers % 2];
    std::memcpy(&slots[static_cast<size_t>(current_)], &value, sizeof(T));
    wait(false);
    T got;
    std::memcpy(&got, &slots[static_cast<size_t>(from)], sizeof(T));
    return got;
  }
  template <class T>
  unsigned match(T value) {
    std::vector<uint64_t>& slots = running().slots[self().barriers % 2];
    std::memcpy(&slots[static_cast<size_t>(current_)], &value, sizeof(T));
    wait(false);
    unsigned peers = 0;
    for (int lane = 0; lane < 32; ++lane) {
      T other;
      std::memcpy(&other, &slots[static_cast<size_t>(current_ / 32 * 32 + lane)], sizeof(T));
      if (other == value) peers |= 1u << lane;
    }
    return peers;
  }

 private:
  static constexpr size_t kStack = 64 * 1024;
  struct Fiber {
    ucontext_t beginning;
    std::jmp_buf place;  // the point at which the fiber waits
    bool begun = false;
    std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStack);
    uint64_t barriers = 0;
    bool needs_block = false;  // waits for all threads of the block, not only for its warp
    bool polls = false;        // waits for another block
    bool arrived = false;      // has reached the barrier of this round, or its end
    bool done = false;
  };
  struct Block {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<uint64_t> slots[2];
    int64_t number = 0;
    uint64_t serial = 0;
    uint64_t round = 0;
    bool runs = false;
  };

  Block& running() { return *places_[static_cast<size_t>(place_)]; }
  const Block& running() const { return *places_[static_cast<size_t>(place_)]; }
  Fiber& self() { return *running().fibers[static_cast<size_t>(current_)]; }

  void wait(bool needs_block) {
    Fiber& fiber = self();
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

  static void addFiber(Block& block) {
    Fiber& fiber = *block.fibers.emplace_back(std::make_unique<Fiber>());
    getcontext(&fiber.beginning);
    fiber.beginning.uc_stack.ss_sp = fiber.stack.get();
    fiber.beginning.uc_stack.ss_size = kStack;
    makecontext(&fiber.beginning, start, 0);
  }

  // Runs all blocks with the same number in the second dimension.
  void runRow(int at_once) {
    while (places_.size() < static_cast<size_t>(at_once)) {
      places_.push_back(std::make_unique<Block>());
    }
    std::minstd_rand random(static_cast<unsigned>(seed_ + 1));
    int64_t next = 0;
    int64_t left = blocks_;
    while (left > 0) {
      has_advanced_ = false;
      for (int i = 0; i < at_once; ++i) {
        const auto place =
            static_cast<int>((static_cast<uint64_t>(i) + seed_) % static_cast<uint64_t>(at_once));
        Block& block = *places_[static_cast<size_t>(place)];
        if (!block.runs && next < blocks_) begin(block, next++);
        const uint64_t most = at_once == 1 ? UINT64_MAX : 1 + random() % 64;
        if (block.runs && !runRounds(place, most)) --left;
      }
      if (!has_advanced_) stop();
    }
  }

  void begin(Block& block, int64_t number) {
    while (block.fibers.size() < static_cast<size_t>(threads_)) addFiber(block);
    for (auto& slots : block.slots) slots.resize(static_cast<size_t>(threads_));
    for (int t = 0; t < threads_; ++t) {
      Fiber& fiber = *block.fibers[static_cast<size_t>(t)];
      fiber.barriers = 0;
      fiber.arrived = false;
      fiber.done = false;
    }
    block.number = number;
    block.serial = ++serials_;
    block.round = 0;
    block.runs = true;
  }

  // Runs at most `most` rounds of a block. In a round, each thread runs to its next barrier.
  // Returns whether a thread of the block has not ended.
  bool runRounds(int place, uint64_t most) {
    if (place != place_ && *exchange_) (*exchange_)(place_, place);
    place_ = place;
    Block& block = running();
    bool is_complete = false;
    do {
      is_complete = runRound(block);
      if (is_complete) block.runs = isThreadLeft(block);
    } while (--most > 0 && is_complete && block.runs);
    return block.runs;
  }

  // Runs each thread to its next barrier or to its end. Returns false if a thread waits for another
  // block. The next call for this block then continues the round.
  bool runRound(Block& block) {
    // The number of threads is a power of two, so an odd step visits every thread once.
    const uint64_t step = 2 * (seed_ * 7919 + block.round % 5) + 1;
    bool polls = false;
    for (int i = 0; i < threads_; ++i) {
      current_ = static_cast<int>((static_cast<uint64_t>(i) * step + seed_) %
                                  static_cast<uint64_t>(threads_));
      Fiber& fiber = self();
      if (fiber.done || fiber.arrived) continue;
      resume(fiber);
      if (has_failed_) stop();
      fiber.arrived = !fiber.polls;
      polls = polls || fiber.polls;
    }
    if (polls) return false;
    for (int t = 0; t < threads_; ++t) block.fibers[static_cast<size_t>(t)]->arrived = false;
    ++block.round;
    has_advanced_ = true;
    return true;
  }

  // Ends the run. Drops all fibers, because they wait in the middle of the kernel.
  [[noreturn]] void stop() {
    places_.clear();
    has_failed_ = false;
    throw Stuck("threads wait for each other forever");
  }

  // Returns whether a thread has not ended. Throws if such a thread would wait at a barrier
  // forever.
  bool isThreadLeft(const Block& block) {
    int done = 0;
    bool needs_block = false;
    for (int t = 0; t < threads_; ++t) {
      const Fiber& fiber = *block.fibers[static_cast<size_t>(t)];
      if (fiber.done != block.fibers[static_cast<size_t>(t / 32 * 32)]->done) stop();
      if (fiber.done) ++done;
      needs_block = needs_block || (!fiber.done && fiber.needs_block);
    }
    if (done != 0 && needs_block) stop();
    return done < threads_;
  }

  const std::function<void()>* entry_ = nullptr;
  const Exchange* exchange_ = nullptr;
  int64_t blocks_ = 0;
  uint64_t seed_ = 0;
  int row_ = 0;
  int rows_ = 1;
  int place_ = 0;
  uint64_t serials_ = 0;
  int threads_ = 0;
  int current_ = 0;
  bool has_advanced_ = false;  // some thread has passed a barrier or a wait
  bool has_failed_ = false;
  std::jmp_buf scheduler_;
  std::vector<std::unique_ptr<Block>> places_;
};

inline Grid& grid() {
  static thread_local Grid instance;
  return instance;
}

// The function of a fiber. Each fiber belongs to a place, and runs one thread of each block that
// gets this place.
inline void Grid::start() {
  Grid& self = grid();
  Fiber& fiber = self.self();
  for (;;) {
    (*self.entry_)();
    fiber.done = true;
    self.suspend(fiber);
  }
}

}  // namespace heddle::simt
