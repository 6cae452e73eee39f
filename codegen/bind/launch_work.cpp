#include "codegen/bind/launch_work.h"

#include <algorithm>

#include "codegen/families/rows/divide_rows.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// The smallest number of bytes that moves between memory and a cache (a unit). If neighbouring
// lanes access distant elements, each access moves a complete unit. On a GPU, other blocks use some
// units while these are in the cache. We assume that such a tensor moves at most kMostCudaWaste
// times its bytes.
constexpr int64_t kCudaUnit = 32;
constexpr int64_t kCppUnit = 64;
constexpr int64_t kMostCudaWaste = 4;

double countOf(const Space& space) {
  double count = 1;
  for (const int64_t extent : space.extents) count *= static_cast<double>(extent);
  return count;
}

// Returns the number of bytes of a tensor that a launch reads or writes, if it accesses each
// element once.
double bytesOf(const SpaceTensor& tensor, const EntryNumbers& entry) {
  auto bytes = static_cast<double>(sizeOf(tensor.dtype));
  for (size_t i = 0; i < entry.space.extents.size(); ++i) {
    if (tensor.strides[i] != 0) bytes *= static_cast<double>(entry.space.extents[i]);
  }
  // Each split or part of rows (SpaceTensor::part_stride) stores its own results in the workspace.
  if (tensor.output && tensor.isInWorkspace()) bytes *= static_cast<double>(entry.schedule.splits);
  return bytes;
}

// Returns how many bytes move per byte of the tensor.
int64_t wasteOf(const SpaceTensor& tensor, const EntryNumbers& entry, Target target) {
  if (entry.squares > 0) return 1;
  const size_t lane = entry.schedule.laneAxis(entry.space);
  if (entry.space.extents[lane] == 1 || tensor.strides[lane] <= 1) return 1;
  const bool is_cuda = target == Target::Cuda;
  const int64_t unit = is_cuda ? kCudaUnit : kCppUnit;
  const int64_t wasted =
      std::min(std::max<int64_t>(unit / sizeOf(tensor.dtype), 1), tensor.strides[lane]);
  return is_cuda ? std::min(wasted, kMostCudaWaste) : wasted;
}

void addBytes(const EntryNumbers& entry, Target target, LaunchWork& work) {
  for (const SpaceTensor& tensor : entry.space.tensors) {
    const double bytes = bytesOf(tensor, entry);
    work.bytes += bytes * static_cast<double>(wasteOf(tensor, entry, target));
    if (!tensor.output) work.again_bytes += bytes * (entry.sweeps.reads - 1);
  }
  const double count = countOf(entry.space);
  for (const IndexedTensor& tensor : entry.space.indexed) {
    work.bytes += count * static_cast<double>(sizeOf(tensor.dtype));
  }
}

// Returns the number of bytes that `lanes` elements of the space read from all tensors.
int64_t loadedBytes(const Space& space, int64_t lanes) {
  int64_t bytes = 0;
  for (const SpaceTensor& tensor : space.tensors) {
    if (!tensor.output) bytes += sizeOf(tensor.dtype) * lanes;
  }
  for (const IndexedTensor& tensor : space.indexed) bytes += sizeOf(tensor.dtype) * lanes;
  return bytes;
}

// Adds the steps and exchanges of blocks that share rows. A block computes work items
// (codegen/tile/divided_rows.h) one after another. In each sweep after the first one, an item waits
// kWaits times: for its ticket, and for the states of the items of the previous sweep. Each wait
// takes about as long as a load.
void addItems(const EntryNumbers& entry, const RowLayout& layout, int64_t elements,
              LaunchWork& work) {
  constexpr int64_t kWaits = 2;
  const DividedRows& divided = layout.divided;
  const int64_t items = ceilDiv(entry.space.keptCount() * divided.parts, layout.blocks);
  const int64_t loads = ceilDiv(ceilDiv(entry.space.reducedCount(), divided.parts), elements);
  work.steps = items * (loads * entry.sweeps.reads + kWaits * (divided.sweeps - 1));
  work.exchanges = items * divided.sweeps;
  work.thread_bytes = loadedBytes(entry.space, int64_t{layout.vector} * layout.registers);
  work.live_bytes = bytesBetweenSweeps(layout, entry.space) / static_cast<double>(layout.blocks);
}

// Adds the steps and exchanges of a kernel that processes rows. In one step, each thread loads all
// its vectors of a row. If the kernel loops over the row (LoopOverRow in codegen/tile/program.h), a
// step loads only the vectors of one part of the row.
void addSteps(const EntryNumbers& entry, const RowCandidate& rows, LaunchWork& work) {
  const RowLayout& layout = rows.layout;
  const int64_t elements = int64_t{layout.threads} * layout.registers * layout.vector;
  if (layout.divided.parts > 0) return addItems(entry, layout, elements, work);
  const int64_t groups = layout.blocks > 0
                             ? ceilDiv(entry.space.keptCount(), layout.blocks * layout.rows)
                             : int64_t{1};
  const int64_t parts =
      rows.looped ? ceilDiv(entry.space.reducedCount(), elements * layout.row_blocks) : int64_t{1};
  work.steps = groups * parts * entry.sweeps.reads;
  work.exchanges = layout.threads > 1 ? groups * entry.sweeps.exchanges : 0;
  if (layout.shared_bytes == 0) {
    work.thread_bytes = loadedBytes(entry.space, int64_t{layout.vector} * layout.registers);
  }
}

// Adds the steps and exchanges of a kernel with squares or loops.
void addSteps(const EntryNumbers& entry, LaunchWork& work) {
  const Schedule& schedule = entry.schedule;
  work.thread_bytes = loadedBytes(entry.space, int64_t{schedule.lanes} * schedule.unroll);
  if (entry.squares > 0) {
    work.thread_bytes =
        ceilDiv(loadedBytes(entry.space,
                            ceilDiv(static_cast<int64_t>(countOf(entry.space)), entry.squares)),
                kSquareThreads);
    work.exchanges = 1;
  } else if (schedule.kind == ScheduleKind::Pointwise) {
    const int64_t at_once = work.blocks * schedule.block * schedule.unroll;
    work.steps = ceilDiv(keptItems(schedule, entry.space), at_once);
  } else {
    const int64_t items = ceilDiv(reducedItems(schedule, entry.space), schedule.splits);
    work.steps = ceilDiv(items, int64_t{schedule.reduce_threads} * schedule.unroll);
    work.exchanges = schedule.reduce_threads > 1 ? 1 : 0;
  }
}

// Adds the inner loops of a Cpp kernel, and the additions that wait for each other. If a loop has
// few accumulators, each addition waits for the previous one.
void addLoops(const EntryNumbers& entry, LaunchWork& work) {
  const Schedule& schedule = entry.schedule;
  const double count = countOf(entry.space);
  const int64_t chunk = std::max<int64_t>(schedule.chunk, 1);
  if (entry.squares > 0) {
    work.loops = static_cast<double>(entry.squares) * kSquareEdge;
    return;
  }
  const int64_t reduced = entry.space.hasReduced() ? reducedItems(schedule, entry.space) : 1;
  work.loops = static_cast<double>(keptItems(schedule, entry.space)) *
               static_cast<double>(reduced) * entry.sweeps.reads;
  if (!entry.space.hasReduced()) return;
  // One step of the loop adds an element to each of `lanes` accumulators. The last elements, which
  // are too few for a step, are added one by one.
  const int64_t lanes = std::max(schedule.lanes, 1);
  const double per_loop = static_cast<double>(chunk / lanes + chunk % lanes);
  work.serial_elements = count / static_cast<double>(chunk) * per_loop;
}

}  // namespace

int64_t opsOf(const Fusion& segment) {
  constexpr int64_t kCallOps = 16;  // as in opsOf() of a body (codegen/plan/body.h)
  int64_t ops = 0;
  for (const Expression& expr : segment.exprs()) {
    ops += expr.op->text.find("hd::") == std::string_view::npos ? 1 : kCallOps;
  }
  return std::max<int64_t>(ops, 1);
}

LaunchWork workOf(const EntryNumbers& entry, Target target) {
  LaunchWork work;
  work.blocks = std::max<int64_t>(entry.grid * entry.grid_y, 1);
  work.threads = std::max(entry.block, 1);
  work.shared_bytes = entry.shared_bytes;
  addBytes(entry, target, work);
  work.live_bytes =
      work.again_bytes / (std::max(entry.sweeps.reads - 1, 1) * static_cast<double>(work.blocks));
  // Estimate: each further sweep computes half of the ops again.
  const double again = 0.5 * (entry.sweeps.reads - 1);
  work.operations = countOf(entry.space) * static_cast<double>(entry.ops) * (1 + again);
  if (target == Target::Cpp) {
    addLoops(entry, work);
  } else if (entry.rows) {
    addSteps(entry, *entry.rows, work);
  } else {
    addSteps(entry, work);
  }
  return work;
}

}  // namespace heddle::codegen
