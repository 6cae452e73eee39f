#include "host/device/cuda_library_launches.h"

#include <algorithm>
#include <bit>

#include "ir/base/ceil_div.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr int64_t kMostBlocks = 4096;  // limit of a grid; blocks loop over further work
constexpr int64_t kScanChunk = 8192;   // elements per chunk of a scan
// These two constants must equal those in codegen/runtime/cuda_keys.h.
constexpr int64_t kWarpLine = 256;  // elements of the longest line that a warp sorts
constexpr int64_t kTile = 4096;     // largest number of elements that a block sorts at once
constexpr int64_t kWarps = kLibraryThreads / 32;
// Argsort: the longest line of a result for which Sorter::select() is used.
constexpr int64_t kMostChosen = kTile / 4;
constexpr int64_t kDigits = 256;  // values of a digit of the radix sort
// Limit of a group of several lines: the number of keys that the workspace holds for the group,
// plus its number of targets. The lines of a group are sorted together, so this limit bounds the
// workspace. A line that exceeds the limit forms a group of its own.
constexpr int64_t kGroupElements = int64_t{1} << 25;

// Returns the number of a dtype in hdl::Type, the enum of the kernels. Both enums list the dtypes
// in the same order.
int64_t typeOf(DType dtype) { return static_cast<int64_t>(dtype); }

bool isLong(DType dtype) { return sizeOf(dtype) == 8; }

// Returns a number of bits. The keys of two elements of the dtype differ only in bits below it.
int keyBits(DType dtype) {
  if (isLong(dtype)) return 64;
  return !isFloat(dtype) && sizeOf(dtype) == 1 ? 8 : 32;
}

// Returns the lowest bit that the sort must compare. The 16 bits of a bf16 or f16 are in the upper
// half of its key. Keys with equal upper halves are equal.
int firstKeyBit(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16 ? 16 : 0; }

// Splits the workspace into parts with 256-byte alignment. If `memory` is nullptr, only counts the
// bytes.
class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(int64_t elements) {
    constexpr int64_t kAlignment = 256;
    const int64_t at = used_;
    used_ += ceilDiv(elements * static_cast<int64_t>(sizeof(T)), kAlignment) * kAlignment;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  int64_t used() const { return used_; }

 private:
  std::byte* memory_;
  int64_t used_ = 0;
};

LibraryArgs baseArgs(const LibraryCall& call) {
  const DType dtype = call.in_descs[0]->dtype;
  refuseFloat8Sums(call);
  const LineShape shape = lineShapeOf(call);
  LibraryArgs args;
  args.out = call.out;
  std::copy(call.in.begin(), call.in.end(), args.in);
  std::copy(std::begin(shape.strides), std::end(shape.strides), args.axis_strides);
  args.n = shape.n;
  args.extent = shape.extent;
  args.first_target = shape.first;
  args.in_type = typeOf(dtype);
  args.out_type = typeOf(call.out_desc->dtype);
  return args;
}

int64_t blocksFor(int64_t items, int64_t items_per_block) {
  return std::clamp<int64_t>(ceilDiv(items, items_per_block), 1, kMostBlocks);
}

// --- cumsum --------------------------------------------------------------------------------------

constexpr int64_t kColumnLines = 4096;  // lines that fill the GPU if one thread scans each
constexpr int64_t kShortScan = 64;  // longest line that one thread scans if lines are not adjacent

// Returns whether one thread scans each line.
bool scansColumns(const LibraryArgs& args) {
  const auto inner = static_cast<size_t>(args.lines.axes) - 1;
  const bool side_by_side =
      args.lines.axes > 0 && args.lines.strides[0][inner] < args.axis_strides[0];
  return args.lines.count >= kColumnLines && (side_by_side || args.n <= kShortScan);
}

// Returns the number of chunks per line. Lines are split only if there are too few of them to fill
// the device.
int64_t scanChunks(const LibraryArgs& args) {
  constexpr int64_t kEnoughLines = 512;
  return args.lines.count >= kEnoughLines ? 1 : ceilDiv(args.n, kScanChunk);
}

void scanLines(LibraryArgs args, LibraryLauncher& launcher) {
  args.chunks = scanChunks(args);
  args.chunk = args.chunks == 1 ? args.n : kScanChunk;
  const int64_t blocks = blocksFor(args.lines.count * args.chunks, 1);
  if (args.chunks == 1) {
    args.totals = nullptr;
    return launcher.launch(LibraryKernel::Scan, blocks, args);
  }
  // There are three launches. The first computes the total of each chunk. The second computes the
  // running sums of these totals. The third scans each chunk, starting from the running sum of the
  // chunks before it.
  launcher.launch(LibraryKernel::Totals, blocks, args);
  LibraryArgs totals;  // for each line of `args`, a line with the totals of its chunks
  totals.in[0] = totals.out = args.totals;
  totals.in_type = totals.out_type =
      typeOf(isFloat(static_cast<DType>(args.in_type)) ? DType::F64 : DType::I64);
  totals.lines.count = totals.lines.sizes[0] = args.lines.count;
  totals.lines.axes = 1;
  for (auto& strides : totals.lines.strides) strides[0] = args.chunks;
  for (int64_t& stride : totals.axis_strides) stride = 1;
  totals.n = totals.chunk = args.chunks;
  totals.chunks = 1;
  launcher.launch(LibraryKernel::Scan, blocksFor(args.lines.count, 1), totals);
  launcher.launch(LibraryKernel::Scan, blocks, args);
}

void cumsum(const LibraryCall& call, LibraryLauncher& launcher) {
  LibraryArgs args = baseArgs(call);
  args.lines = lineSpaceOf(call);
  if (scansColumns(args)) {
    return launcher.launch(LibraryKernel::ScanColumns, blocksFor(args.lines.count, kLibraryThreads),
                           args);
  }
  args.totals = call.workspace;
  scanLines(args, launcher);
}

int64_t cumsumWorkspace(const LibraryCall& call) {
  LibraryArgs args = baseArgs(call);
  args.lines = lineSpaceOf(call);
  const int64_t chunks = scansColumns(args) ? 1 : scanChunks(args);
  return chunks == 1 ? 0 : args.lines.count * chunks * 8;
}

// --- sorting -------------------------------------------------------------------------------------

// Launches the kernels that sort one group of the lines of a call. Also divides the workspace into
// parts.
struct Sorter {
  LibraryArgs args;
  bool wide = false;   // true: keys have 64 bits; false: 32 bits
  int64_t groups = 0;  // number of groups
  int64_t bytes = 0;   // size of the workspace

  // Launches the 32-bit or the 64-bit variant of a kernel. `narrow` names the 32-bit variant. In
  // LibraryKernel, the 64-bit variant follows the 32-bit variant.
  void launch(LibraryKernel narrow, int64_t blocks, const LibraryArgs& what,
              LibraryLauncher& launcher) const {
    launcher.launch(wide ? static_cast<LibraryKernel>(static_cast<int>(narrow) + 1) : narrow,
                    blocks, what);
  }
  // Returns whether one warp or one block sorts a whole line.
  bool isShort() const { return args.n <= kTile; }
  // Returns whether select() is used, because the lines of the result are much shorter than those
  // of the input.
  bool selects() const { return !isShort() && args.by_index == 0 && args.extent <= kMostChosen; }
  // Returns how many of `n` candidates of a line remain after one step of selection.
  int64_t chosenOf(int64_t n) const { return ceilDiv(n, kTile) * args.keep; }
  // Returns whether the kernels that sort also write the result, so that no further launch is
  // needed.
  bool putsIndices() const { return args.by_index == 0 && isShort(); }
  void layOut(void* workspace);
  // Sets the arguments for one group. Call it after layOut(), and only once per object.
  void beginGroup(int64_t index);
  void sort(LibraryLauncher& launcher);

 private:
  void sortShort(LibraryLauncher& launcher) const;
  void sortByDigits(LibraryLauncher& launcher);
  void select(LibraryLauncher& launcher);
};

// Decides how many lines form a group, and divides the workspace for one group. All groups use the
// same workspace, one after another in stream order.
void Sorter::layOut(void* workspace) {
  constexpr int64_t kMostElements = (int64_t{1} << 32) - 2;
  HEDDLE_USER_CHECK(args.n <= kMostElements && args.extent <= kMostElements,
                    "lines of {} elements and {} targets: on CUDA a line may have up to {}", args.n,
                    args.extent, kMostElements);
  if (selects()) args.keep = std::max<int64_t>(args.extent, 1);
  args.to_keys = putsIndices() ? 0 : 1;
  const int64_t held = selects() ? chosenOf(args.n) : args.n;
  const int64_t per_line = held + (args.by_index != 0 ? args.extent + 1 : 0);
  args.group = std::clamp<int64_t>(kGroupElements / std::max<int64_t>(per_line, 1), 1,
                                   std::max<int64_t>(args.lines.count, 1));
  groups = ceilDiv(args.lines.count, args.group);
  args.chunks = ceilDiv(args.n, kTile);
  const int64_t elements = args.group * held;
  Carver carver(workspace);
  const int buffers = putsIndices() ? 0 : isShort() ? 1 : 2;
  for (int i = 0; i < buffers; ++i) {
    args.keys[i] = wide ? static_cast<void*>(carver.take<uint64_t>(elements))
                        : static_cast<void*>(carver.take<uint32_t>(elements));
    args.indices[i] = carver.take<uint32_t>(elements);
  }
  if (args.by_index != 0) args.starts = carver.take<uint32_t>(args.group * (args.extent + 1));
  if (!isShort() && !selects()) {
    const int64_t counts = args.group * args.chunks * kDigits;
    args.counts = carver.take<int64_t>(counts);
    args.totals = carver.take<int64_t>(args.group * ceilDiv(args.chunks * kDigits, kScanChunk));
  }
  bytes = carver.used();
}

void Sorter::beginGroup(int64_t index) {
  const int64_t most = args.group;
  args.first_line = index * most;
  args.group = std::min(most, args.lines.count - args.first_line);
  args.from = 0;
}

// Sorts one group. If putsIndices() is false, the result is in keys[from] and indices[from].
void Sorter::sort(LibraryLauncher& launcher) {
  if (args.n == 0) return;
  if (isShort()) return sortShort(launcher);
  selects() ? select(launcher) : sortByDigits(launcher);
}

void Sorter::sortShort(LibraryLauncher& launcher) const {
  if (args.n <= kWarpLine) {
    return launch(LibraryKernel::SortWarp32, blocksFor(args.group, kWarps), args, launcher);
  }
  launch(LibraryKernel::SortTile32, blocksFor(args.group, 1), args, launcher);
}

void Sorter::select(LibraryLauncher& launcher) {
  // The first step reads the tensor and writes to buffer 0. Each later step reads the candidates
  // from one buffer and writes to the other.
  args.from = 1;
  do {
    args.chunks = ceilDiv(args.n, kTile);
    launch(LibraryKernel::Select32, blocksFor(args.group * args.chunks, 1), args, launcher);
    args.n = chosenOf(args.n);
    args.from = 1 - args.from;
    args.by_keys = 1;
  } while (args.n > kTile);
  sortShort(launcher);
}

void Sorter::sortByDigits(LibraryLauncher& launcher) {
  const int64_t blocks = blocksFor(args.group * args.chunks, 1);
  launch(LibraryKernel::Keys32, blocks, args, launcher);
  // For each digit of 8 bits, three steps follow: count, scan, move. The first step counts the keys
  // of each chunk with each value of the digit. The counts of a line have the value as the outer
  // axis and the chunk as the inner axis. The running sum before a count is therefore the position
  // in the line to which the last step moves the first of these keys.
  LibraryArgs counts;
  counts.out = args.counts;
  counts.in[0] = args.counts;
  counts.totals = args.totals;
  counts.in_type = counts.out_type = typeOf(DType::I64);
  counts.n = args.chunks * kDigits;
  counts.lines.count = counts.lines.sizes[0] = args.group;
  counts.lines.axes = 1;
  for (auto& strides : counts.lines.strides) strides[0] = counts.n;
  for (int64_t& stride : counts.axis_strides) stride = 1;
  for (args.shift = args.first_bit; args.shift < args.bits; args.shift += 8) {
    launch(LibraryKernel::Count32, blocks, args, launcher);
    scanLines(counts, launcher);
    launch(LibraryKernel::Move32, blocks, args, launcher);
    args.from = 1 - args.from;
  }
}

Sorter argsortOf(const LibraryCall& call) {
  Sorter sorter;
  sorter.args = baseArgs(call);
  sorter.args.lines = lineSpaceOf(call);
  const DType dtype = call.in_descs[0]->dtype;
  sorter.wide = isLong(dtype);
  sorter.args.bits = keyBits(dtype);
  sorter.args.first_bit = firstKeyBit(dtype);
  if (call.descending) {
    sorter.args.flip = sorter.wide ? -1 : (int64_t{1} << sorter.args.bits) - 1;
  }
  sorter.layOut(call.workspace);
  return sorter;
}

Sorter scatterOf(const LibraryCall& call) {
  Sorter sorter;
  LibraryArgs& args = sorter.args;
  args = baseArgs(call);
  args.lines = lineSpaceOf(call, LineAxes::OfIndex);
  args.lanes = lineSpaceOf(call, LineAxes::NotOfIndex);
  args.by_index = 1;
  args.index_type = typeOf(call.in_descs[1]->dtype);
  args.add = call.function == LibraryFunction::ScatterAdd ? 1 : 0;
  // A key is an index along the axis of the result. The key `extent` stands for every index outside
  // of the result.
  args.bits = std::bit_width(static_cast<uint64_t>(args.extent));
  // Neighbouring threads differ in what has the smallest stride in the result (lane, target or
  // line), so that stores coalesce.
  const auto inner = [](const LineSpace& space) {
    return space.axes == 0 ? INT64_MAX : space.strides[0][static_cast<size_t>(space.axes) - 1];
  };
  const int64_t targets = args.extent > 1 ? args.axis_strides[0] : INT64_MAX;
  const int64_t lanes = inner(args.lanes);
  const int64_t lines = inner(args.lines);
  args.order = lanes <= targets && lanes <= lines ? 0 : targets <= lines ? 1 : 2;
  sorter.layOut(call.workspace);
  return sorter;
}

Sorter sorterOf(const LibraryCall& call) {
  return call.scatters() ? scatterOf(call) : argsortOf(call);
}

}  // namespace

int64_t libraryStepsWorkspace(const LibraryCall& call) {
  LibraryCall bare = call;
  bare.workspace = nullptr;
  return call.function == LibraryFunction::Cumsum ? cumsumWorkspace(bare) : sorterOf(bare).bytes;
}

void librarySteps(const LibraryCall& call, LibraryLauncher& launcher) {
  if (call.function == LibraryFunction::Cumsum) return cumsum(call, launcher);
  const Sorter all_groups = sorterOf(call);
  for (int64_t group = 0; group < all_groups.groups; ++group) {
    Sorter sorter = all_groups;
    sorter.beginGroup(group);
    sorter.sort(launcher);
    LibraryArgs& args = sorter.args;
    if (!call.scatters()) {
      if (all_groups.putsIndices()) continue;
      launcher.launch(LibraryKernel::Indices, blocksFor(args.group * args.extent, kLibraryThreads),
                      args);
      continue;
    }
    const int64_t targets = args.group * args.extent;
    launcher.launch(LibraryKernel::Starts, blocksFor(targets + args.group, kLibraryThreads), args);
    launcher.launch(LibraryKernel::Combine, blocksFor(targets * args.lanes.count, kLibraryThreads),
                    args);
  }
}

}  // namespace heddle::host
