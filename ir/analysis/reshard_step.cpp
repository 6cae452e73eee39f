#include "ir/analysis/reshard_step.h"

#include <algorithm>

#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step_between_meshes.h"
#include "ir/base/check.h"
#include "ir/types/mesh_relations.h"

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

// Describes how the lists of mesh axes change in a step. Each logical axis has one list.
struct AxesChange {
  std::vector<size_t> grown;   // logical axes to whose lists mesh axes are appended
  std::vector<size_t> shrunk;  // logical axes whose lists lose their innermost mesh axes
  bool other = false;          // some list changes in another way
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

// Returns the entries of Sharding::partial that the step reduces: `from` has them and `to` lacks
// them. Returns nullopt if `to` has an entry that `from` lacks, or if the reduced entries have
// different reductions.
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

// The change of a tensor from one sharding to another. `from` and `to` have one list of mesh axes
// per logical axis.
struct Change {
  const TensorView& tensor;
  AxisLists from;
  AxisLists to;
  const DeviceMesh& mesh;  // the mesh of `from`, or the mesh of `to` if `from` has no sharding
};

// Returns the mesh axes that a logical axis has in `longer` but not in `shorter`. Returns nullopt
// if the blocks along these mesh axes are not flat (blocksAreFlat() in ir/types/mesh_relations.h).
std::optional<std::vector<MeshAxis>> flatTail(const Change& change, size_t axis,
                                              const AxisLists& longer, const AxisLists& shorter) {
  std::vector<MeshAxis> tail = after(longer[axis], shorter[axis].size());
  if (!blocksAreFlat(change.tensor.domain[axis].extent, change.mesh, longer[axis], tail.size())) {
    return std::nullopt;
  }
  return tail;
}

// Returns the step that reduces the partial entries in `gone`. All these entries have the same
// reduction.
ReshardStep reductionStep(const Change& change, const AxesChange& axes,
                          const std::vector<Sharding::Partial>& gone) {
  ReshardStep step;
  step.reduce = gone.front().op;
  step.team = outermostFirst(gone, change.mesh);
  step.mesh = change.mesh;
  if (!axes.shrunk.empty() || axes.grown.size() > 1) return compoundStep();
  if (axes.grown.empty()) {
    step.kind = ReshardStep::Kind::AllReduce;
    return step;
  }
  size_t axis = axes.grown.front();
  auto appended = flatTail(change, axis, change.to, change.from);
  if (!appended || !sameMembers(*appended, step.team)) return compoundStep();
  step.kind = ReshardStep::Kind::ReduceScatter;
  step.axis = static_cast<int64_t>(axis);
  step.team = std::move(*appended);
  return step;
}

// Returns the step between two shardings on one mesh that have the same partial entries.
ReshardStep movingStep(const Change& change, const AxesChange& axes) {
  if (axes.shrunk.empty()) return {ReshardStep::Kind::Slice, -1, {}, {}};
  if (axes.shrunk.size() > 1 || axes.grown.size() > 1) return compoundStep();
  const size_t joined = axes.shrunk.front();
  auto team = flatTail(change, joined, change.from, change.to);
  if (!team) return compoundStep();
  ReshardStep step;
  step.mesh = change.mesh;
  if (axes.grown.empty()) {
    step.kind = ReshardStep::Kind::Gather;
    step.axis = static_cast<int64_t>(joined);
  } else {
    const size_t cut = axes.grown.front();
    if (flatTail(change, cut, change.to, change.from) != team) return compoundStep();
    step.kind = ReshardStep::Kind::AllToAll;
    step.axis = static_cast<int64_t>(cut);
    step.joined = static_cast<int64_t>(joined);
  }
  step.team = std::move(*team);
  return step;
}

bool isReplicated(const std::optional<Sharding>& sharding) {
  return !sharding || sharding->isReplicated();
}

}  // namespace

int64_t blocksOf(const ReshardStep& step) {
  const int64_t ranks = step.team.empty() ? step.mesh.size() : devicesOf(step.mesh, step.team);
  return ranks - (step.root_apart ? 1 : 0);
}

std::string_view name(ReshardStep::Kind kind) {
  switch (kind) {
    case ReshardStep::Kind::Same:
      return "same";
    case ReshardStep::Kind::Relayout:
      return "copy";
    case ReshardStep::Kind::Slice:
      return "slice";
    case ReshardStep::Kind::Gather:
      return "allgather";
    case ReshardStep::Kind::AllReduce:
      return "allreduce";
    case ReshardStep::Kind::ReduceScatter:
      return "reduce_scatter";
    case ReshardStep::Kind::AllToAll:
      return "all_to_all";
    case ReshardStep::Kind::Transfer:
      return "send";
    case ReshardStep::Kind::Broadcast:
      return "broadcast";
    case ReshardStep::Kind::GatherTo:
      return "gather";
    case ReshardStep::Kind::ScatterFrom:
      return "scatter";
    case ReshardStep::Kind::Compound:
      return "compound";
  }
  HEDDLE_CHECK(false, "unknown step kind {}", static_cast<int>(kind));
}

bool samePlacement(const std::optional<Sharding>& a, const std::optional<Sharding>& b) {
  if (isReplicated(a) || isReplicated(b)) {
    bool same_mesh = !a || !b || a->mesh == b->mesh;
    return isReplicated(a) && isReplicated(b) && same_mesh;
  }
  size_t rank = std::max(a->axes.size(), b->axes.size());
  return a->mesh == b->mesh && axesOf(a, rank) == axesOf(b, rank) && a->stream == b->stream &&
         partialOf(a) == partialOf(b);
}

ReshardStep stepBetween(const std::optional<Sharding>& from, const std::optional<Sharding>& to,
                        const TensorView& tensor, const Meshes& meshes) {
  if (samePlacement(from, to)) return {};
  if ((from && from->stream) || (to && to->stream)) return compoundStep();
  if (from && to && from->mesh != to->mesh) return stepBetweenMeshes(*from, *to, tensor, meshes);
  const MeshId mesh = from ? from->mesh : to->mesh;
  const Change change{tensor, axesOf(from, tensor.rank()), axesOf(to, tensor.rank()),
                      meshes.at(mesh)};
  AxesChange axes = changeOf(change.from, change.to);
  auto gone = resolved(partialOf(from), partialOf(to));
  if (axes.other || !gone) return compoundStep();
  return gone->empty() ? movingStep(change, axes) : reductionStep(change, axes, *gone);
}

ReshardStep reshardStepOf(const Fusion& fusion, const Expression& set) {
  HEDDLE_CHECK(set.op->kind == OpKind::Set, "{} is not a set", set.op->name);
  const TensorView& from = fusion.tensor(set.inputs[0]);
  const TensorView& to = fusion.tensor(set.outputs[0]);
  ReshardStep step = stepBetween(from.sharding, to.sharding, to, fusion.meshes);
  if (step.kind != ReshardStep::Kind::Same) return step;
  std::optional<AxisOrder> order = memoryOrder(fusion, set.inputs[0]);
  if (!order || !sameOrder(*order, to.allocationOrder(), to)) {
    step.kind = ReshardStep::Kind::Relayout;
  }
  return step;
}

bool isCommunication(ReshardStep::Kind kind) {
  switch (kind) {
    case ReshardStep::Kind::Gather:
    case ReshardStep::Kind::AllReduce:
    case ReshardStep::Kind::ReduceScatter:
    case ReshardStep::Kind::AllToAll:
    case ReshardStep::Kind::Transfer:
    case ReshardStep::Kind::Broadcast:
    case ReshardStep::Kind::GatherTo:
    case ReshardStep::Kind::ScatterFrom:
    case ReshardStep::Kind::Compound:
      return true;
    case ReshardStep::Kind::Same:
    case ReshardStep::Kind::Relayout:
    case ReshardStep::Kind::Slice:
      return false;
  }
  return false;
}

}  // namespace heddle
