#pragma once

#include <vector>

#include "ir/fusion.h"

namespace heddle {

// Ways from one state of a tensor to another, and what they cost. Bytes are those one device sends,
// counted with the fusion's size defaults and kNominalExtent for symbols without one: a function of
// the fusion alone, so that every rank takes the same way.
class ReshardPaths {
 public:
  static constexpr int64_t kNominalExtent = 4096;

  // Borrows the fusion.
  explicit ReshardPaths(const Fusion& fusion);

  struct Path {
    std::vector<Sharding>
        states;  // after each step; the last is the wanted one; empty: nothing to do
    double bytes = 0;
    bool possible = true;
  };
  // The cheapest chain of elementary steps (ir/set_step.h), then the shortest, then the first in
  // the order gather (fewest mesh axes last), allreduce, reduce-scatter, slice. Both states are
  // over the same mesh, without stream splits.
  Path find(const TensorView& tensor, const Sharding& from, const Sharding& to) const;

  double bytes(const TensorView& tensor) const;  // of the whole tensor

 private:
  struct Edge {
    Sharding to;
    double bytes;
  };
  std::vector<Edge> edges(const TensorView& tensor, const Sharding& state, const Sharding& goal,
                          const DeviceMesh& mesh) const;
  double localBytes(const TensorView& tensor, const Sharding& state, const DeviceMesh& mesh) const;

  const Fusion& fusion_;
  SizeBindings sizes_;
};

// Without its partial entries: what it is once they are reduced.
Sharding resolved(Sharding sharding);

// A replicated tensor of `rank` axes on that mesh.
Sharding replicated(int mesh, size_t rank);

}  // namespace heddle
