#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshard_step.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Finds paths from one sharding of a tensor to another, and their costs. The cost is the number of
// bytes that one device sends. Symbols have the size defaults of the fusion; an extent without a
// default counts as kNominalExtent. A path depends only on the fusion, so every rank takes the same
// path.
class ReshardPaths {
 public:
  static constexpr int64_t kNominalExtent = 4096;

  // Borrows the fusion. UserError if a value has a stream split. This happens if noteStreamSplits
  // was skipped.
  explicit ReshardPaths(const Fusion& fusion);

  struct Path {
    // The sharding after each step. The last one is the wanted sharding. Empty: no step is needed.
    std::vector<Sharding> states;
    double bytes = 0;
    bool possible = true;
  };
  // Returns the path of elementary steps (ir/analysis/reshard_step.h) that moves the fewest bytes.
  // Ties go to the fewest steps, then to the first in this order:
  //  1. steps within the mesh: allgather (the one over most mesh axes first), allreduce, slice,
  //     reduce-scatter, all-to-all;
  //  2. steps to another mesh: to the wanted sharding, to the same sharding, to replicated.
  // Neither sharding may have a stream split.
  Path find(const TensorView& tensor, const Sharding& from, const Sharding& to) const;

  // Returns alternatives to find(): for each first step that find() did not take, the cheapest path
  // that begins with it. The cheapest alternative is first. Returns at most `most` paths.
  std::vector<Path> alternatives(const TensorView& tensor, const Sharding& from, const Sharding& to,
                                 size_t most) const;

  double bytes(const TensorView& tensor) const;  // size of the unsharded tensor
  // Returns the extent at the size defaults, or nullopt if one of its symbols has no default.
  std::optional<int64_t> byDefaults(const Size& extent) const;

 private:
  std::vector<Sharding> neighbours(const Sharding& state, const Sharding& goal) const;
  double cost(const TensorView& tensor, const Sharding& from, const Sharding& to) const;
  double nominal(const Size& extent) const;
  double localBytes(const TensorView& tensor, const Sharding& state) const;
  const DeviceMesh& meshOf(const Sharding& state) const;

  const Fusion& fusion_;
  SizeBindings sizes_;
};

// Returns "allreduce over x", "allgather of axis 0 over y, x", "slice", ...
std::string describeStep(const ReshardStep& step);

// Returns the sharding that a value has after its partial values have been reduced: the same
// sharding without partial entries.
Sharding resolved(Sharding sharding);

// Returns the sharding of a replicated tensor with `rank` axes on that mesh.
Sharding replicated(MeshId mesh, size_t rank);

}  // namespace heddle
