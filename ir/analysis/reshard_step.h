#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// What a `set` expression does. After insertResharding each is one elementary step; Compound is
// what no single step covers.
struct ReshardStep {
  enum class Kind : uint8_t {
    Same,           // nothing: another name
    Relayout,       // a copy in another memory order, or of a cut-out
    Slice,          // what this rank is to have lies within what it has: a view, also on a mesh
                    // within that of a replicated value, or of the same devices
    Gather,         // the innermost mesh axes of one logical axis are gathered
    AllReduce,      // partial -> replicated over the mesh axes
    ReduceScatter,  // partial -> sharded over the same mesh axes on one logical axis
    AllToAll,       // the innermost mesh axes of one logical axis become those of another
    // Between meshes:
    Transfer,     // the same placement on other devices: device i sends to device i
    Broadcast,    // replicated -> replicated
    GatherTo,     // sharded on one logical axis over a whole mesh -> all on one of its devices
    ScatterFrom,  // replicated -> sharded on one logical axis over a whole mesh
    Compound,
  };
  Kind kind = Kind::Same;
  int64_t axis = -1;           // the logical axis that is put together or cut
  std::vector<MeshAxis> team;  // collectives: outermost first; empty: all of the mesh
  std::optional<ReduceOp> reduce;
  int64_t joined = -1;   // AllToAll: the logical axis that is put together; `axis` is cut
  int root = -1;         // Transfer and below: within the team, who has the data or gets it
  DeviceMesh mesh = {};  // collectives: of the team
  // GatherTo, ScatterFrom: the root has none of the blocks and is one more rank of the team, the
  // last
  bool root_apart = false;
  bool operator==(const ReshardStep&) const = default;
};

// GatherTo, ScatterFrom and steps of one mesh: the blocks that are put together or cut.
int64_t blocksOf(const ReshardStep& step);

std::string_view name(ReshardStep::Kind kind);  // "allgather", "slice", ...

ReshardStep reshardStepOf(const Fusion& fusion, const Expression& set);

// The same between two states of that tensor; a missing sharding is replicated. Never Relayout.
// Gathers, scatters and exchanges over several mesh axes at once are steps only where blocks of
// blocks lie flat (ir/types/mesh_relations.h).
ReshardStep stepBetween(const std::optional<Sharding>& from, const std::optional<Sharding>& to,
                        const TensorView& tensor, const Meshes& meshes);

// Whether both place the data alike: no sharding is the same as a replicated one.
bool samePlacement(const std::optional<Sharding>& a, const std::optional<Sharding>& b);

bool isCommunication(ReshardStep::Kind kind);

}  // namespace heddle
