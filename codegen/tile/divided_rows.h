#pragma once

#include <cstdint>

namespace heddle::codegen {

// How the blocks of a launch share long rows (Cuda). A row is divided into parts, which consist of
// neighbouring vectors. A *sweep* of a program ends with a CombineParts or with the program. A
// *work item* is one sweep over one part of a row. Work items have numbers, their *tickets*:
// - Ticket t belongs to sweep t % sweeps. Within a sweep, items have the order of rows and parts. A
//   sweep runs `distance` parts behind the sweep before it (distanceOf()).
// - Each block takes the next ticket, computes the item, and repeats this until no ticket is left.
// - The block stores the states of the accumulators of its item. An item of a later sweep waits for
//   the states of all items of the previous sweep over the same row. It combines them in the order
//   of the parts, so every run gives the same result.
//
// An item waits only for items with smaller tickets, and a running block holds each of these. All
// items therefore complete, even if one block runs at a time. A later sweep finds its part in the
// L2 cache, because few parts lie between two sweeps over the same part.
struct DividedRows {
  int64_t parts = 0;         // parts of a row; 0: rows are not divided
  int32_t sweeps = 0;        // number of CombineParts + 1
  int32_t accumulators = 0;  // accumulators of the program
  // The last sweep marks what it reads and writes as the first to leave the L2 cache. The parts
  // between two sweeps then stay there longer.
  bool streams = true;
};

// The workspace of a launch, which must be 0 when the launch begins. It has the next ticket, a
// counter per row, and a state per accumulator, row and part. The counter says how many items of
// the last sweep have read the inputs with one element per row. hd::Board
// (codegen/runtime/cuda_runtime.h) has the same layout.
constexpr int64_t kFirstArrival = 32;  // the ticket has a line of the cache of its own
constexpr int64_t kSlotBytes = 32;     // up to four words of 32 bits, each with a mark
inline int64_t boardBytes(const DividedRows& divided, int64_t rows) {
  const int64_t counters = (4 * (kFirstArrival + rows) + kSlotBytes - 1) / kSlotBytes;
  return kSlotBytes * (counters + divided.accumulators * rows * divided.parts);
}

// `blocks` is the number of blocks of the launch. If they run at the same time, blocks rarely wait.
inline int64_t distanceOf(const DividedRows& divided, int64_t blocks) {
  return divided.parts + (blocks + divided.sweeps - 1) / divided.sweeps;
}

// The number of threads that a multiprocessor runs at the same time, and the largest number of
// blocks: as many as an H100 runs at the same time. The number of blocks has no influence on the
// results.
constexpr int32_t kDividedThreads = 1024;
constexpr int64_t dividedBlocks(int32_t threads_per_block) {
  constexpr int64_t kMultiprocessors = 132;
  return kMultiprocessors * (kDividedThreads / threads_per_block);
}

}  // namespace heddle::codegen
