#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes how a `set` expression changes the sharding or layout of a value. A step is one view,
// one copy or one collective. A change that needs several steps is Compound; the pass
// insertResharding (ir/passes/sharding/insert_resharding.h) replaces it by a path of steps.
struct ReshardStep {
  enum class Kind : uint8_t {
    Same,      // another name for the same data
    Relayout,  // a copy that changes the memory order, or that packs a view with gaps
    // A view: each rank already holds its part of the result. The meshes of operand and result may
    // differ if they have the same axes and ranks. They may also differ if the operand is
    // replicated and the mesh of the result contains only ranks of the operand's mesh.
    Slice,
    Gather,         // an allgather along one logical axis, over its innermost mesh axes
    AllReduce,      // partial (Sharding::partial) over some mesh axes -> replicated over them
    ReduceScatter,  // partial over some mesh axes -> one logical axis is sharded over them
    AllToAll,       // the innermost mesh axes of one logical axis move to a second logical axis
    // Between meshes:
    Transfer,     // same sharding, disjoint meshes: device i of the first sends to i of the second
    Broadcast,    // replicated on one mesh -> replicated on the other mesh
    GatherTo,     // one logical axis is sharded over a full mesh -> unsharded on one device
    ScatterFrom,  // replicated on one mesh -> one logical axis is sharded over all of the other
                  // mesh
    Compound,     // a change that needs several steps
  };
  Kind kind = Kind::Same;
  int64_t axis = -1;  // the logical axis whose blocks are joined or split; -1: none
  // Collectives: the mesh axes over which the collective runs, outermost first; empty: all axes.
  // The ranks that take part in one collective are a team (DeviceMesh::team() in ir/types/mesh.h).
  std::vector<MeshAxis> team;
  std::optional<ReduceOp> reduce;  // AllReduce, ReduceScatter: the reduction
  int64_t joined = -1;  // AllToAll: the logical axis whose blocks are joined; `axis` is split
  // Collectives between meshes: the index of the sender in the team, or for GatherTo the index of
  // the receiver. All other steps: -1.
  int root = -1;
  DeviceMesh mesh = {};  // collectives: the mesh of the team
  // GatherTo, ScatterFrom: true if the root holds no block. The root is then an additional rank at
  // the end of the team.
  bool root_apart = false;
  bool operator==(const ReshardStep&) const = default;
};

// Returns the number of blocks that the step joins or splits. The step must be GatherTo,
// ScatterFrom or a collective within one mesh.
int64_t blocksOf(const ReshardStep& step);

// Returns the name of the kind in dumps: "allgather", "slice", ...
std::string_view name(ReshardStep::Kind kind);

// Returns the step of a `set` expression.
ReshardStep reshardStepOf(const Fusion& fusion, const Expression& set);

// Returns the step between two shardings of the tensor. A missing sharding counts as replicated.
// The result is never Relayout. A collective can join or split blocks along several mesh axes in
// one step only if the blocks are flat (blocksAreFlat() in ir/types/mesh_relations.h). Flat blocks
// have equal sizes, except short or empty blocks at the end, and follow each other without gaps. If
// the blocks are not flat, the result is Compound. It is also Compound if the shardings differ and
// one of them is split over streams (Sharding::stream).
ReshardStep stepBetween(const std::optional<Sharding>& from, const std::optional<Sharding>& to,
                        const TensorView& tensor, const Meshes& meshes);

// Returns whether both shardings are on the same mesh, give every rank the same data, and are split
// over streams in the same way (Sharding::stream). A missing sharding counts as replicated on every
// mesh.
bool samePlacement(const std::optional<Sharding>& a, const std::optional<Sharding>& b);

// Returns whether ranks exchange data in a step of this kind. The result is true for Compound.
bool isCommunication(ReshardStep::Kind kind);

}  // namespace heddle
