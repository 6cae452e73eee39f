#include "host/passes/chunk/row_cuts.h"

#include <algorithm>

#include "host/passes/analysis/nominal_sizes.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

const Slot& slotOf(const Program& program, SlotId id) { return program.slots[id]; }

SlotId rowsRead(const Program& program, size_t matmul) {
  return std::get<CallLibrary>(program.body[matmul].op).inputs[0];
}

// Returns whether the elements of all `views` are dense in memory, in the given order of axes.
bool lieAlike(const Program& program, const IdVector<SlotId, SlotUses>& uses,
              const std::vector<SlotId>& views, const AxisOrder& order) {
  return std::all_of(views.begin(), views.end(),
                     [&](SlotId id) { return denseOrderOf(program, uses, id) == order; });
}

// Returns a flat split, which splits all axes of rows as if they were one axis. Returns nullopt in
// these cases:
// - There is only one axis of rows, or all axes of rows have the constant extent 1.
// - The last axis is not innermost in memory.
// - The collective gathers or scatters an axis that is not outermost in memory. Axes of the
//   constant extent 1 do not count.
// - A tensor whose chunks are views has a memory order other than OverlapMatch::order, or its order
//   is unknown.
std::optional<ChunkCut> flatCut(const Program& program, const IdVector<SlotId, SlotUses>& uses,
                                const OverlapMatch& match, const Communicate& x,
                                std::optional<size_t> moved) {
  const AxisOrder& order = match.order;
  if (order.size() < 3 || order.back() + 1 != static_cast<int64_t>(order.size())) {
    return std::nullopt;
  }
  ChunkCut cut;
  for (size_t i = 0; i + 1 < order.size(); ++i) cut.axes.push_back(static_cast<size_t>(order[i]));
  const auto is_one = [&](size_t axis) {
    return slotOf(program, x.in).tensor.domain[axis].extent.isConstant(1);
  };
  const auto first = std::find_if_not(cut.axes.begin(), cut.axes.end(), is_one);
  if (first == cut.axes.end() || (moved && *first != *moved)) return std::nullopt;
  std::vector<SlotId> views = kernelViews(program, match);
  for (size_t matmul : match.matmuls) {
    views.push_back(match.kind == CollectiveKind::Allgather
                        ? std::get<CallLibrary>(program.body[matmul].op).outputs[0]
                        : rowsRead(program, matmul));
  }
  if (!lieAlike(program, uses, views, order)) return std::nullopt;
  return cut;
}

}  // namespace

std::vector<ChunkCut> cutsOf(const Program& program, const IdVector<SlotId, SlotUses>& uses,
                             const OverlapMatch& match) {
  const auto& x = std::get<Communicate>(program.body[match.post].op);
  // An axis can be split if all axes further out in memory have extent 1. The loop therefore begins
  // at the outermost axis, and ends at a constant extent other than 1. An axis with a symbolic
  // extent is added to the `ones` of the axes after it. A run uses such a split only if the extents
  // of all its `ones` are 1.
  const size_t last = match.order.size() - 1;
  const bool moves = x.kind != CollectiveKind::Allreduce;
  const std::optional<size_t> moved = moves ? movedAxis(program, x) : std::nullopt;
  if (moves && (!moved || *moved == last)) return {};
  std::vector<size_t> ones;
  std::vector<ChunkCut> cuts;
  if (auto flat = flatCut(program, uses, match, x, moved)) cuts.push_back(std::move(*flat));
  for (int64_t each : match.order) {
    const size_t axis = each;
    if (axis == last) break;
    if (!moves || axis == *moved) cuts.push_back({{axis}, ones});
    const Size& extent = slotOf(program, x.in).tensor.domain[axis].extent;
    if (extent.isConstant(1)) continue;
    if (extent.isConstant()) break;
    ones.push_back(axis);
  }
  return cuts;
}

bool frontTakes(const Program& program, const IdVector<SlotId, SlotUses>& uses,
                const OverlapMatch& match, const ChunkCut& cut) {
  if (!match.front) return false;
  if (!cut.isFlat()) return true;
  std::vector<SlotId> views = kernelViews(program, *match.front);
  if (!match.gather) {
    for (size_t matmul : match.front->matmuls) views.push_back(rowsRead(program, matmul));
  }
  return lieAlike(program, uses, views, match.order);
}

std::optional<size_t> movedAxis(const Program& program, const Communicate& x) {
  const Slot& in = slotOf(program, x.in);
  const Slot& out = slotOf(program, x.out);
  std::optional<size_t> moved;
  if (in.tensor.rank() != out.tensor.rank()) return std::nullopt;
  for (size_t axis = 0; axis < in.tensor.rank(); ++axis) {
    if (devicesOf(program, in, axis) == devicesOf(program, out, axis)) continue;
    if (moved) return std::nullopt;
    moved = axis;
  }
  return moved;
}

std::vector<SlotId> kernelViews(const Program& program, const ChunkStage& stage) {
  if (!stage.kernel) return {};
  const auto& launch = std::get<LaunchKernel>(program.body[*stage.kernel].op);
  std::vector<SlotId> views;
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    const bool in_parts =
        std::any_of(stage.allocates.begin(), stage.allocates.end(), [&](size_t allocate) {
          return std::get<Allocate>(program.body[allocate].op).out == launch.inputs[i];
        });
    if (stage.kernel_rows[i] && !in_parts) views.push_back(launch.inputs[i]);
  }
  return views;
}

}  // namespace heddle::host
