#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshard_step.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Finds paths from one sharding of a tensor to another, and their costs. The cost is the number of
// bytes that one device sends. It uses the size defaults of the fusion, and kNominalExtent for
// symbols without one. It depends only on the fusion, so every rank takes the same path.
class ReshardPaths {
 public:
  static constexpr int64_t kNominalExtent = 4096;

  // Borrows the fusion. UserError: a value has a stream split, because noteStreamSplits was
  // skipped.
  explicit ReshardPaths(const Fusion& fusion);

  struct Path {
    // The sharding after each step. The last one is the wanted sharding. Empty: no step is needed.
    std::vector<Sharding> states;
    double bytes = 0;
    bool possible = true;
  };
  // Returns the path of elementary steps (ir/analysis/reshard_step.h) that moves the fewest bytes.
  // Ties go to the fewest steps, then to the first in this order:
  //  1. allgather (most mesh axes first), allreduce, slice, reduce-scatter, all-to-all;
  //  2. to another mesh: directly to the wanted sharding, with the same sharding, replicated.
  // Neither sharding may have a stream split.
  Path find(const TensorView& tensor, const Sharding& from, const Sharding& to) const;

  // Returns the cheapest path for each other first step, cheapest first, `most` paths at most.
  std::vector<Path> alternatives(const TensorView& tensor, const Sharding& from, const Sharding& to,
                                 size_t most) const;

  double bytes(const TensorView& tensor) const;  // of the unsharded tensor
  // Returns the extent at the size defaults; nullopt if one of its symbols has no default.
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

// Returns the sharding without its partial entries, which is the sharding after their reduction.
Sharding resolved(Sharding sharding);

// Returns the sharding of a replicated tensor with `rank` axes on that mesh.
Sharding replicated(MeshId mesh, size_t rank);

}  // namespace heddle
