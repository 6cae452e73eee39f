#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes the change of sharding or layout that a `set` expression makes. After insertResharding
// (ir/passes/sharding/insert_resharding.h) each `set` is one step of a kind other than Compound.
struct ReshardStep {
  enum class Kind : uint8_t {
    Same,           // another name for the same data
    Relayout,       // a copy that changes the memory order, or that packs a view with gaps
    Slice,          // a view: each rank already holds its part of the result. The meshes may differ
                    // if they have the same axes and ranks, or if a replicated value moves to some
                    // of the ranks that hold it
    Gather,         // an allgather over the innermost mesh axes of one logical axis
    AllReduce,      // partial -> replicated over the mesh axes
    ReduceScatter,  // partial -> one logical axis is sharded over the same mesh axes
    AllToAll,       // the innermost mesh axes move from one logical axis to another
    // Between meshes:
    Transfer,     // the same sharding on other devices: device i sends to device i
    Broadcast,    // replicated -> replicated
    GatherTo,     // one logical axis is sharded over all of a mesh -> unsharded on one device
    ScatterFrom,  // replicated -> one logical axis is sharded over all of a mesh
    Compound,     // a change that needs several steps
  };
  Kind kind = Kind::Same;
  int64_t axis = -1;           // the logical axis whose blocks are joined or split; -1: none
  std::vector<MeshAxis> team;  // of a collective: mesh axes, outermost first; empty: all
  std::optional<ReduceOp> reduce;
  int64_t joined = -1;   // AllToAll: the logical axis that is joined; `axis` is split
  int root = -1;         // steps between meshes: the sender's position in the team (GatherTo: the
                         // receiver's position)
  DeviceMesh mesh = {};  // collectives: the mesh of the team
  // GatherTo, ScatterFrom: the root holds no block. It is an additional rank, the last of the team.
  bool root_apart = false;
  bool operator==(const ReshardStep&) const = default;
};

// Returns the number of blocks that the step joins or splits. The step must be GatherTo,
// ScatterFrom or a collective within one mesh.
int64_t blocksOf(const ReshardStep& step);

// Returns the name for dumps: "allgather", "slice", ...
std::string_view name(ReshardStep::Kind kind);

// Returns the step of a `set` expression.
ReshardStep reshardStepOf(const Fusion& fusion, const Expression& set);

// Returns the step between two shardings of the tensor. A missing sharding counts as replicated.
// Never returns Relayout. A gather, scatter or all-to-all over several mesh axes is one step only
// if blocksAreFlat() (ir/types/mesh_relations.h); otherwise the result is Compound.
ReshardStep stepBetween(const std::optional<Sharding>& from, const std::optional<Sharding>& to,
                        const TensorView& tensor, const Meshes& meshes);

// Returns whether every rank holds the same data with both shardings. A missing sharding counts as
// replicated.
bool samePlacement(const std::optional<Sharding>& a, const std::optional<Sharding>& b);

// Returns whether ranks exchange data in a step of this kind. Compound counts as communication.
bool isCommunication(ReshardStep::Kind kind);

}  // namespace heddle
