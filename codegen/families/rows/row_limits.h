#pragma once

#include <cstdint>

// Limits that several files share when they choose layouts of rows.
namespace heddle::codegen::row_limits {

// Bytes that one thread loads before it waits, so that enough loads are in flight.
inline constexpr int64_t kBytesInFlight = 64;
// The largest product of the operations of a body (RowDemand::ops) and the elements of a thread.
// The compiler unrolls the body for these elements. A larger product takes seconds to compile.
inline constexpr int64_t kMostUnrolled = 4096;
// The shared memory that a block may use without an opt-in. A layout of rows reserves 8 bytes of it
// per accumulator and warp.
inline constexpr int64_t kSharedBytes = 48 << 10;
// The most dynamic shared memory that a block may use if two blocks must fit on one multiprocessor
// of an H100. The multiprocessor has 228 KiB, and each block needs a few KiB more for its
// accumulators and for the system.
inline constexpr int64_t kSharedBytesOfTwo = 110 << 10;
inline constexpr int64_t kMultiprocessors = 132;  // number of multiprocessors of an H100
// With fewer rows than this, one row per block leaves multiprocessors idle.
inline constexpr int64_t kFewRows = kMultiprocessors;
inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kMostThreads = 1024;  // the largest number of threads of a block
// The largest number of threads of a block for a row in shared memory. Also the largest number for
// a row that is read in a loop, unless a choice names another one.
inline constexpr int64_t kLoopThreads = 512;
// The largest number of blocks of a cluster. Every GPU with clusters supports it.
inline constexpr int64_t kMostBlocksOfCluster = 8;
inline constexpr int64_t kShortestBlock = 128;  // threads that a block should have at least
// A kernel with at most this many elements is so short that idle processors do not matter.
inline constexpr int64_t kShortWork = 1 << 18;

}  // namespace heddle::codegen::row_limits
