#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/fusion.h"

namespace heddle {

// What a `set` expression does. After insertResharding each is one elementary step; Compound is
// what no single step covers.
struct SetStep {
  enum class Kind : uint8_t {
    Same,           // nothing: another name
    Relayout,       // a copy in another memory order, or of a cut-out
    Slice,          // replicated over mesh axes -> this rank's block: a view
    Gather,         // the innermost mesh axes of one logical axis are gathered
    AllReduce,      // partial -> replicated over the mesh axes
    ReduceScatter,  // partial -> sharded over the same mesh axes on one logical axis
    Compound,
  };
  Kind kind = Kind::Same;
  int64_t axis = -1;           // Gather, ReduceScatter: the logical axis
  std::vector<MeshAxis> team;  // Gather, AllReduce, ReduceScatter: outermost first
  std::optional<ReduceOp> reduce;
  bool operator==(const SetStep&) const = default;
};

SetStep setStepOf(const Fusion& fusion, const Expression& set);

// The same between two states of a tensor of `rank` axes; a missing sharding is replicated. Never
// Relayout.
SetStep stepBetween(const std::optional<Sharding>& from, const std::optional<Sharding>& to,
                    size_t rank, const std::vector<DeviceMesh>& meshes);

// Whether both place the data alike: no sharding is the same as a replicated one.
bool samePlacement(const std::optional<Sharding>& a, const std::optional<Sharding>& b);

bool isCommunication(SetStep::Kind kind);

}  // namespace heddle
