#include "codegen/plan/space.h"

#include <algorithm>

#include "codegen/plan/merge_indexed_axes.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/shardable_axes.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

int64_t productOf(AxisNumbers::const_iterator from, AxisNumbers::const_iterator to) {
  int64_t product = 1;
  for (; from != to; ++from) product *= *from;
  return product;
}

AxisNumbers numbersOf(const std::vector<int64_t>& list) { return {list.begin(), list.end()}; }

// Reads the extents and offsets of the axes of the space from the descriptors of values. Checks
// that all descriptors give an axis the same extent, and the same offset if bodies use it.
class Extents {
 public:
  Extents(const Fusion& segment, const Analysis& analysis, const RunSizes& run)
      : segment_(segment),
        analysis_(analysis),
        run_(run),
        values_(analysis.reduced.size(), -1),
        offsets_(analysis.reduced.size(), 0) {}

  void read(ValueId id, const TensorDesc& desc) {
    checkRank(id, desc);
    for (size_t i = 0; i < desc.rank(); ++i) {
      const AxisId axis = analysis_.axes[id][i];
      if (axis.valid()) agree(axis, id, i, desc.sizes[i], desc.offset[i]);
    }
  }

  // Reads the descriptor of the operand that an Index expression reads at computed indices. Along
  // an axis whose index does not come from operand 1, the output has as many elements as the
  // operand, plus IndexedAxis::low and IndexedAxis::high. Low and high are negative if the
  // expression removes elements.
  void readIndexed(ExprId id_of_expr, const TensorDesc& desc) {
    const Expression& expr = segment_.expr(id_of_expr);
    ValueId id = expr.inputs[0];
    checkRank(id, desc);
    const std::vector<IndexedAxis>& indexed_axes = analysis_.indexed_axes[id_of_expr];
    const bool in_blocks = looksUpInBlocks(segment_, expr);
    for (size_t i = 0; i < indexed_axes.size(); ++i) {
      if (in_blocks && indexed_axes[i].output_axis == IndexedAxis::kByValue) continue;
      HEDDLE_USER_CHECK(
          indexed_axes[i].together || desc.sizes[i] == desc.global[i],
          "{} of %{}: axis {} of %{} must be unsplit on each rank, got {} of {} elements",
          expr.op->name, segment_.value(expr.outputs[0]).name, i, segment_.value(id).name,
          desc.sizes[i], desc.global[i]);
      if (indexed_axes[i].output_axis == IndexedAxis::kByValue) continue;
      const AxisId axis = analysis_.axes[expr.outputs[0]][indexed_axes[i].output_axis];
      if (!axis.valid()) continue;
      agree(axis, id, i, paddedSize(expr, indexed_axes[i], i, desc), desc.offset[i]);
    }
  }

  AxisExtents finish() {
    for (int64_t extent : values_) {
      HEDDLE_CHECK(extent >= 0, "segment {}: an axis without an extent", segment_.name);
    }
    return {std::move(values_), std::move(offsets_), numbersOf(run_.widths), run_.clusters};
  }

 private:
  int64_t widthOf(const Size& width) const {
    if (width.isConstant()) return width.constant();
    const std::vector<Size>& all = analysis_.widths;
    const auto found = std::find(all.begin(), all.end(), width);
    return run_.widths.at(found - all.begin());
  }

  // Returns the size of the output axis that corresponds to axis `i` of the operand.
  int64_t paddedSize(const Expression& expr, const IndexedAxis& axis, size_t i,
                     const TensorDesc& desc) const {
    int64_t size = desc.sizes[i];
    const int64_t low = widthOf(axis.low), high = widthOf(axis.high);
    const bool fits = !__builtin_add_overflow(size, low, &size) &&
                      !__builtin_add_overflow(size, high, &size) && size >= 0;
    HEDDLE_USER_CHECK(fits,
                      "{} of %{}: axis {} of %{} has {} elements, and adding {} and {} gives no "
                      "valid size",
                      expr.op->name, segment_.value(expr.outputs[0]).name, i,
                      segment_.value(expr.inputs[0]).name, desc.sizes[i], low, high);
    return size;
  }

  void checkRank(ValueId id, const TensorDesc& desc) const {
    const Value& value = segment_.value(id);
    HEDDLE_USER_CHECK(desc.rank() == value.tensor.rank(),
                      "%{}: expected a tensor of rank {}, got sizes {}", value.name,
                      value.tensor.rank(), str(desc.sizes));
  }

  void agree(AxisId axis, ValueId id, size_t logical, int64_t extent, int64_t offset) {
    int64_t& known = values_[axis.index()];
    int64_t& start = offsets_[axis.index()];
    HEDDLE_USER_CHECK(known < 0 || known == extent,
                      "axis {} of %{}: expected {} elements as in the other operands, got {}",
                      logical, segment_.value(id).name, known, extent);
    if (known < 0) start = offset;
    bool needed =
        std::binary_search(analysis_.coordinates.begin(), analysis_.coordinates.end(), axis);
    HEDDLE_USER_CHECK(
        !needed || extent == 0 || start == offset,
        "axis {} of %{}: expected a shard that begins at index {} as in the other operands, got {}",
        logical, segment_.value(id).name, start, offset);
    known = extent;
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const RunSizes& run_;
  AxisNumbers values_;
  AxisNumbers offsets_;
};

SpaceTensor layOut(const Analysis& analysis, ValueId id, const TensorDesc& desc, int operand) {
  SpaceTensor tensor;
  tensor.operand = operand;
  tensor.dtype = desc.dtype;
  tensor.strides.assign(analysis.reduced.size(), 0);
  for (size_t i = 0; i < desc.rank(); ++i) {
    const AxisId axis = analysis.axes[id][i];
    if (axis.valid()) tensor.strides[axis.index()] = desc.strides[i];
  }
  return tensor;
}

// Returns whether axis `a` should be inside of axis `b`. Each tensor with both axes votes for the
// axis along which it has the smaller stride. The weight of the vote is the number of its bytes.
bool belongsInside(const Space& space, size_t a, size_t b) {
  double votes = 0;
  for (const SpaceTensor& tensor : space.tensors) {
    int64_t stride_a = tensor.strides[a];
    int64_t stride_b = tensor.strides[b];
    if (stride_a == 0 || stride_b == 0 || stride_a == stride_b) continue;
    double bytes = static_cast<double>(sizeOf(tensor.dtype));
    for (size_t i = 0; i < space.extents.size(); ++i) {
      if (tensor.strides[i] != 0) bytes *= static_cast<double>(space.extents[i]);
    }
    // If an input and an output of the same size disagree, the output wins: stores with a large
    // stride cost more than loads with a large stride.
    if (tensor.output) bytes *= 1.25;
    votes += stride_a < stride_b ? bytes : -bytes;
  }
  return votes > 0;
}

// Sorts the axes from outermost to innermost. The votes need not be transitive, so std::sort is not
// possible.
void orderAxes(const Space& space, AxisPositions& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    for (size_t j = i; j > 0 && belongsInside(space, axes[j - 1], axes[j]); --j) {
      std::swap(axes[j - 1], axes[j]);
    }
  }
}

// Returns whether a body needs the index along this axis. mergeable() then returns false, so that
// the kernel has a coordinate for this axis alone.
bool isIndexed(const Space& space, size_t axis) {
  return std::any_of(space.coordinates.begin(), space.coordinates.end(),
                     [&](const SpaceCoordinate& c) { return c.axis == static_cast<int>(axis); });
}

bool mergeable(const Space& space, size_t outer, size_t inner) {
  if (isIndexed(space, outer) || isIndexed(space, inner)) return false;
  return std::all_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& t) {
    return t.strides[outer] == t.strides[inner] * space.extents[inner];
  });
}

// Appends the axes `order` of `from` to `to`, and merges neighbouring axes where possible.
void appendMerged(const Space& from, const AxisPositions& order, Space& to) {
  size_t first = to.extents.size();
  for (size_t i = 0; i < order.size(); ++i) {
    size_t axis = order[i];
    bool merge = to.extents.size() > first && mergeable(from, order[i - 1], axis);
    const int64_t bit = from.merged[axis];
    if (merge) {
      to.extents.back() *= from.extents[axis];
      to.merged.back() |= bit;
    } else {
      to.extents.push_back(from.extents[axis]);
      to.merged.push_back(bit);
      for (CoordinateId c : from.coordinates.ids()) {
        if (from.coordinates[c].axis != static_cast<int>(axis)) continue;
        to.coordinates[c].axis = static_cast<int>(to.extents.size()) - 1;
      }
    }
    for (size_t t = 0; t < from.tensors.size(); ++t) {
      if (merge) to.tensors[t].strides.pop_back();
      to.tensors[t].strides.push_back(from.tensors[t].strides[axis]);
    }
  }
}

size_t positionOf(const Fusion& segment, ValueId input) {
  const std::vector<ValueId>& ids = segment.inputs();
  return static_cast<size_t>(std::find(ids.begin(), ids.end(), input) - ids.begin());
}

// Returns the space over all axes of the analysis, in the order of the analysis.
Space layOutAll(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                DescList inputs, DescList outputs) {
  Space raw;
  raw.tensors.reserve(inputs.size() + outputs.size());
  auto add = [&](ValueId id, const TensorDesc& desc, int operand, bool output) {
    if (segment.value(id).is_scalar || analysis.indexed_only[id]) return;
    raw.tensors.push_back(layOut(analysis, id, desc, operand));
    raw.tensors.back().output = output;
  };
  int operand = 0;
  for (size_t i = 0; i < inputs.size(); ++i) add(segment.inputs()[i], inputs[i], operand++, false);
  for (size_t i = 0; i < outputs.size(); ++i)
    add(segment.outputs()[i], outputs[i], operand++, true);
  raw.indexed.reserve(analysis.indexed_inputs.size());
  for (ValueId id : analysis.indexed_inputs) {
    size_t i = positionOf(segment, id);
    const TensorDesc& desc = inputs[i];
    raw.indexed.push_back({static_cast<int>(i), desc.dtype, numbersOf(desc.sizes),
                           numbersOf(desc.global), numbersOf(desc.offset),
                           numbersOf(desc.strides)});
  }
  raw.coordinates.reserve(analysis.coordinates.size());
  for (AxisId axis : analysis.coordinates) {
    const bool shifted = std::ranges::binary_search(analysis.shifted, axis);
    raw.coordinates.push_back({axis.number(), extents.offsets[axis.index()], shifted});
  }
  raw.extents = extents.extents;
  for (size_t axis = 0; axis < raw.extents.size(); ++axis) {
    raw.merged.push_back(axis < 63 ? int64_t{1} << axis : 0);
  }
  return raw;
}

void appendUnitAxis(Space& space, int64_t stride) {
  space.extents.push_back(1);
  space.merged.push_back(0);
  for (SpaceTensor& tensor : space.tensors) tensor.strides.push_back(stride);
}

}  // namespace

int64_t Space::keptCount() const { return productOf(extents.begin(), extents.begin() + kept); }

bool isEmpty(const Space& space) {
  return space.keptCount() == 0 || (!space.hasReduced() && space.tensors.empty());
}

int64_t Space::reducedCount() const { return productOf(extents.begin() + kept, extents.end()); }

AxisExtents axisExtents(const Fusion& segment, const Analysis& analysis, DescList inputs,
                        DescList outputs, const RunSizes& run) {
  HEDDLE_CHECK(
      inputs.size() == segment.inputs().size() && outputs.size() == segment.outputs().size(),
      "a kernel got {} inputs and {} outputs, but its segment has {} and {}", inputs.size(),
      outputs.size(), segment.inputs().size(), segment.outputs().size());
  const std::vector<ValueId>& values = analysis.generated;
  HEDDLE_CHECK(values.size() == run.generated.size(),
               "segment {}: {} descriptors for {} values with generated axes", segment.name,
               run.generated.size(), values.size());
  HEDDLE_CHECK(analysis.widths.size() == run.widths.size(),
               "segment {}: {} numbers for {} widths of pads", segment.name, run.widths.size(),
               analysis.widths.size());
  Extents extents(segment, analysis, run);
  auto read = [&](ValueId id, const TensorDesc& desc) {
    if (!segment.value(id).is_scalar && !analysis.indexed_only[id]) extents.read(id, desc);
  };
  for (size_t i = 0; i < inputs.size(); ++i) read(segment.inputs()[i], inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) read(segment.outputs()[i], outputs[i]);
  for (ExprId id : segment.exprs().ids()) {
    const Expression& expr = segment.expr(id);
    if (expr.op->kind != OpKind::Index) continue;
    extents.readIndexed(id, inputs[positionOf(segment, expr.inputs[0])]);
  }
  for (size_t i = 0; i < values.size(); ++i) extents.read(values[i], run.generated[i]);
  return extents.finish();
}

TensorDesc denseDescOf(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                       ValueId id) {
  std::vector<int64_t> sizes;
  std::vector<int64_t> offsets;
  for (AxisId axis : analysis.axes[id]) {
    sizes.push_back(axis.valid() ? extents.extents[axis.index()] : 1);
    offsets.push_back(axis.valid() ? extents.offsets[axis.index()] : 0);
  }
  TensorDesc desc = denseDesc(segment.tensor(id).dtype, std::move(sizes));
  desc.offset = std::move(offsets);
  return desc;
}

Space coalesce(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
               DescList inputs, DescList outputs) {
  Space raw = layOutAll(segment, analysis, extents, inputs, outputs);
  if (!raw.indexed.empty()) mergeIndexedAxes(analysis, raw);
  AxisPositions kept;
  AxisPositions reduced;
  for (size_t axis = 0; axis < raw.extents.size(); ++axis) {
    if (raw.extents[axis] == 1) continue;
    (analysis.reduced[AxisId(axis)] ? reduced : kept).push_back(axis);
  }
  orderAxes(raw, kept);
  orderAxes(raw, reduced);
  Space space;
  // One axis of extent 1 may be added to the kept axes, and one to the reduced axes.
  const size_t most_axes = raw.extents.size() + 2;
  space.extents.reserve(most_axes);
  space.merged.reserve(most_axes);
  space.tensors.reserve(raw.tensors.size());
  for (const SpaceTensor& tensor : raw.tensors) {
    SpaceTensor& added = space.tensors.emplace_back();
    added.operand = tensor.operand;
    added.dtype = tensor.dtype;
    added.output = tensor.output;
    added.strides.reserve(most_axes);
  }
  space.widths = extents.widths;
  space.clusters = extents.clusters;
  space.coordinates = raw.coordinates;
  for (SpaceCoordinate& coordinate : space.coordinates) coordinate.axis = -1;
  space.indexed = std::move(raw.indexed);
  appendMerged(raw, kept, space);
  // A space without kept axes gets a kept axis of one element. If there are no reductions, all
  // tensors have stride 1 along this axis, so that tensors with more elements get the same kernel
  // text.
  if (kept.empty()) appendUnitAxis(space, analysis.reductions.empty() ? 1 : 0);
  space.kept = space.extents.size();
  appendMerged(raw, reduced, space);
  if (reduced.empty() && !analysis.reductions.empty()) appendUnitAxis(space, 0);
  return space;
}

bool isFull(const SpaceTensor& t, const Space& space) {
  for (size_t i = 0; i < space.extents.size(); ++i) {
    if (t.strides[i] == 0 && space.extents[i] > 1) return false;
  }
  return true;
}

bool isAligned(const Space& space, size_t axis, int32_t width) {
  return std::all_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& t) {
    if (t.strides[axis] == 0) return true;  // not loaded as vectors
    const int64_t bytes = std::min<int64_t>(width * sizeOf(t.dtype), kFullAlignment);
    for (size_t i = 0; i < space.extents.size(); ++i) {
      if (i != axis && t.strides[i] % width != 0) return false;
    }
    return t.alignment % bytes == 0;
  });
}

bool lanesAlongReduced(const Space& space) {
  constexpr int64_t kFewLanes = 32;
  size_t kept = space.kept - 1;
  size_t reduced = space.extents.size() - 1;
  const bool is_generated = std::all_of(space.tensors.begin(), space.tensors.end(),
                                        [&](const auto& t) { return t.strides[reduced] == 0; });
  if (is_generated && space.extents[reduced] > 1) return space.extents[kept] < kFewLanes;
  double votes = 0;
  for (const SpaceTensor& t : space.tensors) {
    double bytes = static_cast<double>(sizeOf(t.dtype));
    for (size_t i = 0; i < space.extents.size(); ++i) {
      if (t.strides[i] != 0) bytes *= static_cast<double>(space.extents[i]);
    }
    auto rank = [&](size_t axis) {
      return t.strides[axis] == 0 || space.extents[axis] == 1 ? INT64_MAX : t.strides[axis];
    };
    if (rank(reduced) < rank(kept)) votes += bytes;
    if (rank(reduced) > rank(kept)) votes -= bytes;
  }
  return votes > 0 || (votes == 0 && space.extents[kept] < kFewLanes);
}

bool selectsAlong(const Space& space, size_t axis) {
  return space.indexed.size() > 1 &&
         std::ranges::any_of(space.coordinates, [&](const SpaceCoordinate& c) {
           return c.shifted && c.axis == static_cast<int>(axis);
         });
}

bool hasLookups(const Space& space) {
  return !space.indexed.empty() &&
         std::any_of(space.tensors.begin(), space.tensors.end(), [](const SpaceTensor& t) {
           return !t.output && (t.dtype == DType::I32 || t.dtype == DType::I64);
         });
}

}  // namespace heddle::codegen
