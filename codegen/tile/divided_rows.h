#pragma once

#include <cstdint>

namespace heddle::codegen {

// How the blocks of a launch share long rows (Cuda). A row is divided into parts. A part consists
// of neighbouring vectors. A *sweep* of a program consists of the statements up to the next
// CombineParts (codegen/tile/program.h), or up to the end of the program. A *work item* is one
// sweep over one part of a row. Work items have numbers, their *tickets*:
// - Ticket t belongs to sweep t % sweeps. Within a sweep, items have the order of rows and parts
//   (but see `reversed`).
//   Each sweep runs distanceOf() parts behind the previous sweep of the program.
// - Each block takes the next ticket, computes the item, and repeats this until no ticket is left.
// - The block stores the states of the accumulators of its item. An item of a later sweep waits for
//   the states of all items of the previous sweep over the same row. The later item combines these
//   states in a fixed order, so every run gives the same result.
//
// An item waits only for items with smaller tickets. Tickets are taken in ascending order, so each
// smaller ticket belongs to a block that has started. All items therefore complete, even if only
// one block runs at a time. A later sweep finds its part in the L2 cache, because few parts lie
// between two sweeps over the same part.
struct DividedRows {
  int64_t parts = 0;         // parts of a row; 0: rows are not divided
  int32_t sweeps = 0;        // number of CombineParts + 1
  int32_t accumulators = 0;  // accumulators of the program
  // true: the last sweep marks the cache lines that it reads and writes as the first to leave the
  // L2 cache. The parts between two sweeps then stay in the cache longer.
  bool streams = true;
  // true: every second sweep processes the parts of a row in descending order. It then begins with
  // the parts that were read last, so more of them are still in the L2 cache.
  bool reversed = false;
};

// The workspace of a launch. All its bytes must be 0 when the launch begins. It contains the next
// ticket, a counter for each row, and a slot for the state of each accumulator in each part of each
// row. A counter says how many items of the last sweep have read the inputs with one element per
// row. The last of these items stores the outputs with one element per row, because such an output
// may have the memory of one of these inputs. hd::Board (codegen/runtime/cuda_runtime.h) describes
// the same layout.
constexpr int64_t kFirstArrival = 32;  // index of the first counter, in words of 32 bits; the
                                       // ticket therefore has its own cache line
constexpr int64_t kSlotBytes = 32;     // up to four words of 32 bits, each with a mark
// Returns the number of bytes of the workspace. `rows` is the number of rows of the launch.
inline int64_t boardBytes(const DividedRows& divided, int64_t rows) {
  const int64_t counters = (4 * (kFirstArrival + rows) + kSlotBytes - 1) / kSlotBytes;
  return kSlotBytes * (counters + divided.accumulators * rows * divided.parts);
}

// Returns by how many parts a sweep runs behind the sweep before it. `blocks` is the number of
// blocks of the launch. With this distance, blocks that run at the same time rarely wait for each
// other.
inline int64_t distanceOf(const DividedRows& divided, int64_t blocks) {
  return divided.parts + (blocks + divided.sweeps - 1) / divided.sweeps;
}

// kDividedThreads is the number of threads of such a launch that a multiprocessor runs at the same
// time. dividedBlocks() returns the largest number of blocks of a launch. An H100 runs this many
// blocks at the same time. The results do not depend on the number of blocks.
constexpr int32_t kDividedThreads = 1024;
constexpr int64_t dividedBlocks(int32_t threads_per_block) {
  constexpr int64_t kMultiprocessors = 132;
  return kMultiprocessors * (kDividedThreads / threads_per_block);
}

}  // namespace heddle::codegen
