#pragma once

#include "host/device/library_call.h"

namespace heddle::host {

// Translates library functions into launches of the CUDA kernels of codegen/runtime/cuda_library.h.
// The code here does not use CUDA, so that tests can run it without a GPU.
// A line is a row of elements along the axis of the call (host/device/library_call.h).
//   cumsum: usually, one block scans each line. If there are many lines, and they are short or
//     neighbours in memory, one thread scans each line. If there are few long lines, they are split
//     into chunks, and the totals of the chunks are summed first.
//   argsort: the keys of each line are sorted. A warp or a block sorts a short line. A radix sort
//     with digits of 8 bits sorts a long line. If the result has only k elements of a long line,
//     each tile of the line selects its first k elements as candidates. This step is repeated on
//     the candidates until one block can hold them.
//   scatter: the index is sorted in the same way. The sort is stable, so the sources of one target
//     become neighbours, in row-major order. Then each element of the result is replaced by its
//     last source (scatter), or its sources are added to it (scatter_add).

enum class LibraryKernel : uint8_t {
  Scan,
  Totals,
  ScanColumns,
  Keys32,
  Keys64,
  SortWarp32,
  SortWarp64,
  SortTile32,
  SortTile64,
  Select32,
  Select64,
  Count32,
  Count64,
  Move32,
  Move64,
  Starts,
  Combine,
  Places,
};
inline constexpr const char* kLibraryEntries[] = {
    "hdlScan",       "hdlTotals",     "hdlScanColumns", "hdlKeys32",     "hdlKeys64",
    "hdlSortWarp32", "hdlSortWarp64", "hdlSortTile32",  "hdlSortTile64", "hdlSelect32",
    "hdlSelect64",   "hdlCount32",    "hdlCount64",     "hdlMove32",     "hdlMove64",
    "hdlStarts",     "hdlCombine",    "hdlPlaces"};
inline constexpr int kLibraryThreads = 256;  // of every block

// The argument struct of the kernels. It equals hdl::Args member by member. A "place" is the index
// of an element in its line; it moves together with the key of the element.
struct LibraryArgs {
  void* out = nullptr;
  const void* in[3] = {};
  LineSpace lines;
  LineSpace lanes;               // scatter: the axes along which the index does not change
  int64_t axis_strides[4] = {};  // along the axis, by operand as in LineSpace
  void* keys[2] = {};
  uint32_t* places[2] = {};
  uint32_t* starts = nullptr;
  int64_t* counts = nullptr;
  void* totals = nullptr;
  int64_t n = 0;       // elements of a line; scatter: of the source
  int64_t extent = 0;  // argsort: elements of a line of the result; scatter: number of targets
  int64_t first_target = 0;
  int64_t first_line = 0;  // first line of the group that is sorted together
  int64_t group = 0;       // number of lines of the group
  int64_t chunk = 0;       // elements of a chunk
  int64_t chunks = 0;      // chunks of a line
  int64_t keep = 0;        // elements that each tile selects
  int64_t from = 0;        // index of the keys and places that hold the lines
  int64_t shift = 0;       // lowest bit of the current digit
  int64_t first_bit = 0;   // lowest bit in which keys can differ
  int64_t bits = 0;        // one past the highest bit in which keys can differ
  int64_t order = 0;       // combine: the fastest index; 0: lanes, 1: targets, 2: lines
  int64_t in_type = 0;
  int64_t out_type = 0;
  int64_t index_type = 0;  // i64 or i32
  int64_t flip = 0;        // mask of the key bits to invert, for a descending sort
  int64_t add = 0;         // 1: scatter_add, 0: scatter
  int64_t by_index = 0;    // 1: the index of a scatter is sorted, 0: the elements of a tensor
  int64_t by_keys = 0;     // 1: the input of the sort is already keys and places
  int64_t to_keys = 0;     // 1: a warp or block writes sorted keys and places, 0: it writes `out`
};

class LibraryLauncher {
 public:
  virtual ~LibraryLauncher() = default;
  virtual void launch(LibraryKernel kernel, int64_t blocks, const LibraryArgs& args) = 0;
};

// Returns the workspace bytes of a call; its pointers are ignored. UserError if the kernels cannot
// compute the call: a line has 2^32 - 1 or more elements or targets, or an f8 type would be summed
// or sorted.
int64_t libraryStepsWorkspace(const LibraryCall& call);
// Launches the kernels of a call in stream order. The result must have at least one element.
void librarySteps(const LibraryCall& call, LibraryLauncher& launcher);

}  // namespace heddle::host
