#pragma once

#include "host/device/library_call.h"

namespace heddle::host {

// How the library functions become launches of the CUDA kernels of codegen/runtime/cuda_library.h.
// Knows no CUDA, so that it is tested without a GPU.
//   cumsum: a line a thread where neighbouring lines lie side by side, else a line a block; few
//     long lines are cut into chunks, whose totals are summed first.
//   argsort: keys of each line are sorted, in a warp or a block when they are few, else by digits
//     of 8 bits. Where few places of a long line are wanted, those of each tile are chosen, and of
//     these again, until a block holds the rest.
//   scatter: the index is sorted in the same way, stable, so that the sources of one target are
//     neighbours in row-major order; then each element of the result takes or adds its own.

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

// hdl::Args of the kernels, member by member.
struct LibraryArgs {
  void* out = nullptr;
  const void* in[3] = {};
  LineSpace lines;
  LineSpace lanes;  // scatter: along which the index is the same
  int64_t axis_strides[4] = {};
  void* keys[2] = {};
  uint32_t* places[2] = {};
  uint32_t* starts = nullptr;
  int64_t* counts = nullptr;
  void* totals = nullptr;
  int64_t n = 0;       // elements of a line; scatter: of its source
  int64_t extent = 0;  // argsort: of a line of the result; scatter: targets
  int64_t first_target = 0;
  int64_t first_line = 0;  // of those that are sorted together
  int64_t group = 0;       // how many they are
  int64_t chunk = 0;
  int64_t chunks = 0;
  int64_t keep = 0;       // elements that are chosen of a tile
  int64_t from = 0;       // which keys and places hold the lines
  int64_t shift = 0;      // of the digit
  int64_t first_bit = 0;  // of those of a key that differ
  int64_t bits = 0;       // up to here
  int64_t order = 0;      // combine: 0: lanes move fastest, 1: targets, 2: lines
  int64_t in_type = 0;
  int64_t out_type = 0;
  int64_t index_type = 0;  // i64 or i32
  int64_t flip = 0;        // bits of a key that are turned: descending
  int64_t add = 0;
  int64_t by_index = 0;
  int64_t by_keys = 0;  // what is sorted is keys and places already
  int64_t to_keys = 0;  // what a warp or a block sorts becomes keys and places
};

class LibraryLauncher {
 public:
  virtual ~LibraryLauncher() = default;
  virtual void launch(LibraryKernel kernel, int64_t blocks, const LibraryArgs& args) = 0;
};

// Pointers of the call are not looked at. UserError for what the kernels cannot do: lines of 2^32
// elements or targets, f8 that is summed or sorted.
int64_t libraryStepsWorkspace(const LibraryCall& call);
// In stream order. The result has elements.
void librarySteps(const LibraryCall& call, LibraryLauncher& launcher);

}  // namespace heddle::host
