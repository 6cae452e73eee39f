#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshard_step.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Finds paths from one sharding of a tensor to another, and their costs. The cost is the number of
// bytes that one device sends. Symbols have the size defaults of the fusion. A symbol without a
// default counts as kNominalExtent. A path depends only on the fusion, so every rank takes the same
// path.
class ReshardPaths {
 public:
  static constexpr int64_t kNominalExtent = 4096;

  // Borrows the fusion, which must outlive this object. Throws UserError if a value has a stream
  // split, which happens if noteStreamSplits was skipped.
  explicit ReshardPaths(const Fusion& fusion);

  struct Path {
    // The sharding after each step. The last entry is the wanted sharding. Empty: no step is
    // needed.
    std::vector<Sharding> states;
    double bytes = 0;      // bytes that one device sends
    bool possible = true;  // false: no sequence of steps leads to the wanted sharding
  };
  // Returns the path of elementary steps (ir/analysis/reshard_step.h) that moves the fewest bytes.
  // If several paths move equally many bytes, the path with the fewest steps is taken. The
  // remaining ties are broken by a fixed order of the steps: steps within a mesh come before steps
  // to another mesh.
  // Neither sharding may have a stream split.
  Path find(const TensorView& tensor, const Sharding& from, const Sharding& to) const;

  // Returns alternatives to the path of find(). For each first step that find() did not take, the
  // list contains the cheapest path that begins with this step. The cheapest alternative is first.
  // The list has at most `most` paths.
  std::vector<Path> alternatives(const TensorView& tensor, const Sharding& from, const Sharding& to,
                                 size_t most) const;

  double bytes(const TensorView& tensor) const;  // size of the unsharded tensor in bytes
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

// Returns the sharding of a value after its partial values have been reduced. It is the same
// sharding without partial entries.
Sharding resolved(Sharding sharding);

// Returns the sharding of a tensor with `rank` axes that is replicated on the mesh.
Sharding replicated(MeshId mesh, size_t rank);

}  // namespace heddle
