#pragma once

#include "host/device/library_call.h"

namespace heddle::host {

// Translates library functions (Device::library()) into launches of CUDA kernels
// (codegen/runtime/cuda_library.h). The code in this file does not use CUDA, so tests can run it
// without a GPU.
//
// A line consists of the elements along the axis of the call, at fixed indices of all other axes
// (host/device/library_call.h). Lines are adjacent in memory if, in the result, the stride from one
// line to the next is less than the stride along a line.
// - cumsum: a scan computes the running sums of a line. Usually, one block of threads scans each
//   line. If there are many lines, and they are short or adjacent in memory, one thread scans each
//   line. If there are few long lines, each line is split into chunks. The kernels first compute
//   the total of each chunk, and then scan the chunks.
// - argsort: each element gets an integer key. Keys compare like their elements. For a descending
//   sort, the bits of the keys are inverted. The keys of each line are sorted. A warp or a block
//   sorts a short line. A radix sort with digits of 8 bits sorts a long line. If the result
//   contains only the first k indices of a long sorted line, and k is at most 1024, the line is
//   split into tiles. The k elements of each tile that come first in the order of the sort become
//   candidates. This step is repeated on the candidates until one block can sort those that remain.
// - scatter: a target is an index along the axis of the result. The sources of a target are the
//   source elements that the index tensor assigns to it. The elements of each line of the index
//   tensor are sorted by warps, blocks or the radix sort, as in argsort. The sources of one target
//   thus become neighbours. They stay in row-major order, because the sort does not reorder equal
//   keys. Each element of the result then becomes the last source of its target (scatter), or the
//   sum of the tensor's element and all sources (scatter_add). Without a source, it becomes the
//   tensor's element.

// The kernels. A suffix 32 or 64 is the number of bits of a key.
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
  Indices,
};
inline constexpr const char* kLibraryEntries[] = {
    "hdlScan",       "hdlTotals",     "hdlScanColumns", "hdlKeys32",     "hdlKeys64",
    "hdlSortWarp32", "hdlSortWarp64", "hdlSortTile32",  "hdlSortTile64", "hdlSelect32",
    "hdlSelect64",   "hdlCount32",    "hdlCount64",     "hdlMove32",     "hdlMove64",
    "hdlStarts",     "hdlCombine",    "hdlIndices"};
inline constexpr int kLibraryThreads = 256;  // threads per block, for all of these kernels

// The argument struct of the kernels. Its members equal those of hdl::Args in the kernels' source.
// The *index* of an element is its position in its line. The sort moves the index of an element
// together with the key of the element. To limit the workspace, the lines of a call are sorted in
// *groups*, one group after another. A *lane* of a scatter is a combination of indices along the
// axes of `lanes`. All lanes use the same sorted lines of the index tensor.
struct LibraryArgs {
  void* out = nullptr;
  const void* in[3] = {};
  LineSpace lines;               // the lines of the call; scatter: along LineAxes::OfIndex
  LineSpace lanes;               // scatter: the axes LineAxes::NotOfIndex
  int64_t axis_strides[4] = {};  // strides along the axis of the call; operands as in LineSpace
  void* keys[2] = {};            // arrays of keys; a sort step moves keys from one to the other
  uint32_t* indices[2] = {};     // the indices that belong to the keys
  uint32_t* starts = nullptr;    // scatter: per target, the position of its first source
  int64_t* counts = nullptr;     // radix sort: number of keys per value of the digit and chunk
  void* totals = nullptr;        // totals of the chunks of a scan
  int64_t n = 0;                 // elements of a line; scatter: elements of a line of the source
  int64_t extent = 0;  // argsort: elements of a line of the result; scatter: number of targets
  int64_t first_target = 0;  // scatter: index of this rank's first target in the unsharded tensor
  int64_t first_line = 0;    // number of the group's first line in the call
  int64_t group = 0;         // number of lines of the group
  int64_t chunk = 0;         // elements per chunk of a scan
  int64_t chunks = 0;        // chunks per line
  int64_t keep = 0;          // number of candidates that each tile selects
  int64_t from = 0;          // the keys are in keys[from] now, their indices in indices[from]
  int64_t shift = 0;         // lowest bit of the current digit
  int64_t first_bit = 0;     // keys with equal bits from this bit upwards are equal
  int64_t bits = 0;          // keys differ only in bits below this number
  // The kernel Combine: what differs between neighbouring threads; 0: lane, 1: target, 2: line
  int64_t order = 0;
  int64_t in_type = 0;     // a DType
  int64_t out_type = 0;    // a DType
  int64_t index_type = 0;  // a DType: i64 or i32
  int64_t flip = 0;        // mask of the key bits to invert, for a descending sort
  int64_t add = 0;         // 1: scatter_add, 0: scatter
  int64_t by_index = 0;    // 1: sorts the index tensor of a scatter, 0: sorts tensor elements
  int64_t by_keys = 0;     // 1: the input consists of keys and indices, 0: of tensor elements
  int64_t to_keys = 0;     // 1: a warp or block writes sorted keys and indices, 0: it writes `out`
};

// Enqueues one launch of a kernel.
class LibraryLauncher {
 public:
  virtual ~LibraryLauncher() = default;
  virtual void launch(LibraryKernel kernel, int64_t blocks, const LibraryArgs& args) = 0;
};

// Returns the number of workspace bytes that a call needs. The addresses of the tensors and of the
// workspace in the call are ignored.
// Throws UserError if the kernels cannot compute the call:
// - argsort and scatter: a line has 2^32 - 1 or more elements or targets;
// - an f8 type would be summed or sorted;
// - lineSpaceOf() finds too many axes.
int64_t libraryStepsWorkspace(const LibraryCall& call);
// Launches the kernels of a call in order. The result must have at least one element. The workspace
// must have libraryStepsWorkspace() bytes.
void librarySteps(const LibraryCall& call, LibraryLauncher& launcher);

}  // namespace heddle::host
