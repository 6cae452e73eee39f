#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshard_step.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Ways from one state of a tensor to another, and what they cost. Bytes are those one device sends,
// counted with the fusion's size defaults and kNominalExtent for symbols without one: a function of
// the fusion alone, so that every rank takes the same way.
class ReshardPaths {
 public:
  static constexpr int64_t kNominalExtent = 4096;

  // Borrows the fusion. UserError: a value with a stream split, which noteStreamSplits takes off.
  explicit ReshardPaths(const Fusion& fusion);

  struct Path {
    // After each step; the last is the wanted one; empty: nothing to do.
    std::vector<Sharding> states;
    double bytes = 0;
    bool possible = true;
  };
  // The cheapest chain of elementary steps (ir/analysis/reshard_step.h), then the shortest, then
  // the first in the order allgather (fewest mesh axes last), allreduce, slice, reduce-scatter,
  // all-to-all, and from one mesh to another: straight to the wanted state, in the same placement,
  // replicated. Neither state has a stream split.
  Path find(const TensorView& tensor, const Sharding& from, const Sharding& to) const;

  // The cheapest chain for each other first step, cheapest first.
  std::vector<Path> alternatives(const TensorView& tensor, const Sharding& from, const Sharding& to,
                                 size_t most) const;

  double bytes(const TensorView& tensor) const;  // of the whole tensor
  // Of an extent that the size defaults decide; nullopt when one of its symbols has none.
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

// "allreduce over x", "allgather of axis 0 over y, x", "slice", ...
std::string describeStep(const ReshardStep& step);

// Without its partial entries: what it is once they are reduced.
Sharding resolved(Sharding sharding);

// A replicated tensor of `rank` axes on that mesh.
Sharding replicated(MeshId mesh, size_t rank);

}  // namespace heddle
