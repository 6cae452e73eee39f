#include "codegen/plan/merge_indexed_axes.h"

#include <algorithm>
#include <optional>

namespace heddle::codegen {
namespace {

// The logical axes of an indexed tensor that correspond to two axes of the space.
struct AxisPair {
  size_t outer;
  size_t inner;
  bool operator==(const AxisPair&) const = default;
};

class Merger {
 public:
  Merger(const Analysis& analysis, Space& space) : analysis_(analysis), space_(space) {}

  void run() {
    for (const SpaceCoordinate& inner : space_.coordinates) {
      while (mergeInto(inner)) {
      }
    }
  }

 private:
  // Merges one axis into the axis of `inner`. Returns false if there is none.
  bool mergeInto(const SpaceCoordinate& inner) {
    return isFree(inner) && std::any_of(space_.coordinates.begin(), space_.coordinates.end(),
                                        [&](const SpaceCoordinate& outer) {
                                          return outer.axis != inner.axis && isFree(outer) &&
                                                 tryMerge(AxisId(outer.axis), AxisId(inner.axis));
                                        });
  }

  // Returns whether ops use the index along the axis only to read an element with this index.
  bool isFree(const SpaceCoordinate& coordinate) const {
    return space_.extents[coordinate.axis] > 1 && coordinate.offset == 0 && !coordinate.shifted;
  }

  bool tryMerge(AxisId outer, AxisId inner) {
    if (analysis_.reduced[outer] != analysis_.reduced[inner]) return false;
    const int64_t extent = space_.extents[inner.index()];
    const bool suits = std::ranges::all_of(space_.tensors, [&](const SpaceTensor& t) {
      return t.strides[outer.index()] == t.strides[inner.index()] * extent;
    });
    if (!suits || !findPairs(outer, inner)) return false;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i]) mergeAxes(space_.indexed[i], *pairs_[i]);
    }
    space_.extents[inner.index()] *= space_.extents[outer.index()];
    space_.extents[outer.index()] = 1;
    space_.merged[inner.index()] |= space_.merged[outer.index()];
    return true;
  }

  // Sets `pairs_`. Returns false if an indexed tensor does not permit the merge.
  bool findPairs(AxisId outer, AxisId inner) {
    pairs_.assign(space_.indexed.size(), std::nullopt);
    std::vector<bool> seen(space_.indexed.size(), false);
    for (const IndexedOp& op : analysis_.indexed_ops) {
      const auto find = [&](AxisId axis) {
        return static_cast<size_t>(std::find(op.same.begin(), op.same.end(), axis) -
                                   op.same.begin());
      };
      const AxisPair pair{find(outer), find(inner)};
      const size_t rank = op.same.size();
      if ((pair.outer == rank) != (pair.inner == rank)) return false;
      std::optional<AxisPair> found;
      if (pair.outer < rank) found = pair;
      if (seen[op.input] && pairs_[op.input] != found) return false;
      seen[op.input] = true;
      pairs_[op.input] = found;
      if (found && !suits(space_.indexed[op.input], *found, outer, inner)) return false;
    }
    return true;
  }

  bool suits(const IndexedTensor& tensor, const AxisPair& pair, AxisId outer, AxisId inner) const {
    const auto isWhole = [&](size_t axis, AxisId of_space) {
      return tensor.extents[axis] == space_.extents[of_space.index()] &&
             tensor.global[axis] == tensor.extents[axis] && tensor.offsets[axis] == 0;
    };
    return isWhole(pair.outer, outer) && isWhole(pair.inner, inner) &&
           tensor.strides[pair.outer] == tensor.strides[pair.inner] * tensor.extents[pair.inner];
  }

  static void mergeAxes(IndexedTensor& tensor, const AxisPair& pair) {
    tensor.extents[pair.inner] *= tensor.extents[pair.outer];
    tensor.global[pair.inner] = tensor.extents[pair.inner];
    tensor.extents[pair.outer] = tensor.global[pair.outer] = 1;
    tensor.strides[pair.outer] = 0;
  }

  const Analysis& analysis_;
  Space& space_;
  std::vector<std::optional<AxisPair>> pairs_;  // per indexed tensor
};

}  // namespace

void mergeIndexedAxes(const Analysis& analysis, Space& space) { Merger(analysis, space).run(); }

}  // namespace heddle::codegen
