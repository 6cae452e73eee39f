#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshard_step.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Finds paths from one sharding of a tensor to another, and their costs. The cost is the number of
// bytes that one device sends. The cost is computed with the default sizes of the fusion
// (Fusion::size_defaults). A symbol without a default counts as kNominalExtent. A path depends only
// on the fusion, so every rank takes the same path.
class ReshardPaths {
 public:
  static constexpr int64_t kNominalExtent = 4096;

  // Borrows the fusion, which must outlive this object. Throws UserError if a value has a stream
  // split (Sharding::StreamSplit). The pass noteStreamSplits, which removes all stream splits, must
  // therefore run first.
  explicit ReshardPaths(const Fusion& fusion);

  struct Path {
    // The sharding after each step. The last entry is the wanted sharding. Empty: no step is
    // needed, or no path exists (`possible`).
    std::vector<Sharding> states;
    double bytes = 0;      // bytes that one device sends
    bool possible = true;  // false: no sequence of steps leads to the wanted sharding
  };
  // Returns the path of steps (ir/analysis/reshard_step.h) that moves the fewest bytes. No step of
  // the path is Compound. If several paths move equally many bytes, the path with the fewest steps
  // is taken. The remaining ties are broken in a fixed way, so that all ranks choose the same path.
  // Neither `from` nor `to` may have a stream split.
  Path find(const TensorView& tensor, const Sharding& from, const Sharding& to) const;

  // Returns alternatives to the path of find(). For each first step that find() did not take, the
  // list contains the cheapest path that begins with this step. The cheapest alternative is first.
  // The list has at most `most` paths.
  std::vector<Path> alternatives(const TensorView& tensor, const Sharding& from, const Sharding& to,
                                 size_t most) const;

  // Returns the size of the unsharded tensor in bytes, computed with the default sizes.
  double bytes(const TensorView& tensor) const;
  // Returns bytes(), except that an empty axis counts as one element. If two tensors have equal
  // extents, the one with the wider dtype therefore always has more bytes.
  double nonemptyBytes(const TensorView& tensor) const;
  // Records that a decision of the caller depended on the extents of the tensor (SizeReads in
  // ir/sizes/size_reads.h). A call of find() needs no record: all costs that it compares are
  // proportional to the bytes of the tensor, so the cheapest path does not depend on the extents.
  void noteRead(const TensorView& tensor) const;
  // Returns the extent with the default sizes of the fusion, or nullopt if one of its symbols has
  // no default.
  std::optional<int64_t> byDefaults(const Size& extent) const;

 private:
  std::vector<Sharding> neighbours(const Sharding& state, const Sharding& goal) const;
  double cost(const TensorView& tensor, const Sharding& from, const Sharding& to) const;
  double nominal(const Size& extent) const;
  double localShare(const Sharding& state) const;
  const DeviceMesh& meshOf(const Sharding& state) const;

  const Fusion& fusion_;
  SizeBindings sizes_;
};

// Returns "allreduce over x", "allgather of axis 0 over y, x", "slice", ...
std::string describeStep(const ReshardStep& step);

// Returns the sharding without its partial entries. This is the sharding that a value has after its
// partial values have been reduced.
Sharding resolved(Sharding sharding);

// Returns the replicated sharding on the mesh, for a tensor with `rank` axes.
Sharding replicated(MeshId mesh, size_t rank);

}  // namespace heddle
