#include "ir/set_step.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/memory_order.h"

namespace heddle {
namespace {

using AxisLists = std::vector<std::vector<MeshAxis>>;

AxisLists axesOf(const std::optional<Sharding>& sharding, size_t rank) {
  AxisLists axes = sharding ? sharding->axes : AxisLists{};
  axes.resize(rank);
  return axes;
}

std::vector<Sharding::Partial> partialOf(const std::optional<Sharding>& sharding) {
  std::vector<Sharding::Partial> partial;
  if (sharding) partial = sharding->partial;
  std::sort(partial.begin(), partial.end(),
            [](const auto& a, const auto& b) { return a.axis < b.axis; });
  return partial;
}

bool startsWith(const std::vector<MeshAxis>& list, const std::vector<MeshAxis>& prefix) {
  return prefix.size() <= list.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

std::vector<MeshAxis> after(const std::vector<MeshAxis>& list, size_t prefix) {
  return {list.begin() + static_cast<std::ptrdiff_t>(prefix), list.end()};
}

// How the lists of the logical axes change.
struct AxesChange {
  std::vector<size_t> grown;   // mesh axes were appended
  std::vector<size_t> shrunk;  // the innermost mesh axes went
  bool other = false;
};

AxesChange changeOf(const AxisLists& from, const AxisLists& to) {
  AxesChange change;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (startsWith(to[axis], from[axis])) {
      change.grown.push_back(axis);
    } else if (startsWith(from[axis], to[axis])) {
      change.shrunk.push_back(axis);
    } else {
      change.other = true;
    }
  }
  return change;
}

// The partial entries that are resolved; nullopt when some appear, or they mix reductions.
std::optional<std::vector<Sharding::Partial>> resolved(const std::vector<Sharding::Partial>& from,
                                                       const std::vector<Sharding::Partial>& to) {
  std::vector<Sharding::Partial> gone;
  for (const Sharding::Partial& partial : from) {
    if (std::find(to.begin(), to.end(), partial) == to.end()) gone.push_back(partial);
  }
  if (gone.size() + to.size() != from.size()) return std::nullopt;
  for (const Sharding::Partial& partial : gone) {
    if (partial.op != gone.front().op) return std::nullopt;
  }
  return gone;
}

std::vector<MeshAxis> outermostFirst(const std::vector<Sharding::Partial>& partial,
                                     const DeviceMesh& mesh) {
  std::vector<MeshAxis> team;
  for (const DeviceMesh::Axis& axis : mesh.axes) {
    for (const Sharding::Partial& each : partial) {
      if (each.axis == axis.axis) team.push_back(axis.axis);
    }
  }
  return team;
}

bool sameMembers(std::vector<MeshAxis> a, std::vector<MeshAxis> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// Steps that resolve partial values, all over one reduction.
SetStep reductionStep(const AxesChange& change, const AxisLists& from, const AxisLists& to,
                      const std::vector<Sharding::Partial>& gone, const DeviceMesh& mesh) {
  SetStep step;
  step.reduce = gone.front().op;
  step.team = outermostFirst(gone, mesh);
  if (!change.shrunk.empty() || change.grown.size() > 1)
    return {SetStep::Kind::Compound, -1, {}, {}};
  if (change.grown.empty()) {
    step.kind = SetStep::Kind::AllReduce;
    return step;
  }
  size_t axis = change.grown.front();
  std::vector<MeshAxis> appended = after(to[axis], from[axis].size());
  if (!sameMembers(appended, step.team)) return {SetStep::Kind::Compound, -1, {}, {}};
  step.kind = SetStep::Kind::ReduceScatter;
  step.axis = static_cast<int64_t>(axis);
  step.team = std::move(appended);
  return step;
}

bool isReplicated(const std::optional<Sharding>& sharding) {
  return !sharding || sharding->isReplicated();
}

}  // namespace

bool samePlacement(const std::optional<Sharding>& a, const std::optional<Sharding>& b) {
  if (isReplicated(a) || isReplicated(b)) {
    bool same_mesh = !a || !b || a->mesh == b->mesh;
    return isReplicated(a) && isReplicated(b) && same_mesh;
  }
  size_t rank = std::max(a->axes.size(), b->axes.size());
  return a->mesh == b->mesh && axesOf(a, rank) == axesOf(b, rank) && a->stream == b->stream &&
         partialOf(a) == partialOf(b);
}

SetStep stepBetween(const std::optional<Sharding>& from, const std::optional<Sharding>& to,
                    size_t rank, const std::vector<DeviceMesh>& meshes) {
  if (samePlacement(from, to)) return {};
  const SetStep compound{SetStep::Kind::Compound, -1, {}, {}};
  if ((from && from->stream) || (to && to->stream)) return compound;
  if (from && to && from->mesh != to->mesh) return compound;
  AxisLists from_axes = axesOf(from, rank);
  AxisLists to_axes = axesOf(to, rank);
  AxesChange change = changeOf(from_axes, to_axes);
  auto gone = resolved(partialOf(from), partialOf(to));
  if (change.other || !gone) return compound;
  if (!gone->empty()) {
    const DeviceMesh& mesh = meshes.at(static_cast<size_t>(from->mesh));
    return reductionStep(change, from_axes, to_axes, *gone, mesh);
  }
  if (change.shrunk.empty()) return {SetStep::Kind::Slice, -1, {}, {}};
  if (change.shrunk.size() > 1 || !change.grown.empty()) return compound;
  size_t axis = change.shrunk.front();
  return {SetStep::Kind::Gather, static_cast<int64_t>(axis),
          after(from_axes[axis], to_axes[axis].size()), std::nullopt};
}

SetStep setStepOf(const Fusion& fusion, const Expression& set) {
  HEDDLE_CHECK(set.op->kind == OpKind::Set, "{} is no set", set.op->name);
  const TensorView& from = fusion.tensor(set.inputs[0]);
  const TensorView& to = fusion.tensor(set.outputs[0]);
  SetStep step = stepBetween(from.sharding, to.sharding, to.rank(), fusion.meshes);
  if (step.kind != SetStep::Kind::Same) return step;
  std::optional<AxisOrder> order = memoryOrder(fusion, set.inputs[0]);
  if (!order || !sameOrder(*order, to.allocationOrder(), to)) {
    step.kind = SetStep::Kind::Relayout;
  }
  return step;
}

bool isCommunication(SetStep::Kind kind) {
  switch (kind) {
    case SetStep::Kind::Gather:
    case SetStep::Kind::AllReduce:
    case SetStep::Kind::ReduceScatter:
    case SetStep::Kind::Compound:
      return true;
    case SetStep::Kind::Same:
    case SetStep::Kind::Relayout:
    case SetStep::Kind::Slice:
      return false;
  }
  return false;
}

}  // namespace heddle
