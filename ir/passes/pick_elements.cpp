#include "ir/passes/pick_elements.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/reshape_order.h"
#include "ir/base/check.h"
#include "ir/composite/composite.h"

namespace heddle {
namespace {

bool hasOneElement(const TensorView& tensor, size_t axis) {
  return tensor.domain[axis].extent.isConstant(1);
}

// Writes the expressions that replace one expression. It computes with tensors of the rank of the
// result. If a tensor does not depend on an axis, this axis is a broadcast axis, or an ordinary
// axis of one element if isPlainUnit() is true.
class ElementWriter {
 public:
  ElementWriter(const Fusion& from, const Expression& expr,
                const std::function<bool(ValueId)>& is_generated, FusionRewriter& rewriter)
      : expr_(expr),
        operand_(from.tensor(expr.inputs[0])),
        old_(from.value(expr.outputs[0])),
        from_(from),
        is_generated_(is_generated),
        rewriter_(rewriter),
        rank_(old_.tensor.rank()),
        indices_(operand_.rank(), kNoValue) {}

  void write() {
    const ValueId first = now().values().endId();
    findIndices();
    const ValueId value = pick(rewriter_.at(expr_.inputs[0]), indices_);
    const ValueId result = valid_ == kNoValue ? stretched(value) : filled(value);
    placeFrom(first);
    rewriter_.adopt(result, expr_.outputs[0]);
  }

 private:
  // An index of elements along an axis. It is a tensor, or kNoValue if it is 0 for all elements.
  using Index = ValueId;

  FusionBuilder& b() { return rewriter_.builder(); }
  const Fusion& now() const { return rewriter_.fusion(); }
  ValueId integer(int64_t value) { return b().constant(value); }

  // --- the indices of the selected elements in the operand -------------------------------------

  // Sets `indices_` and `valid_`.
  void findIndices() {
    switch (expr_.op->kind) {
      case OpKind::Index:
        return findComputedIndices();
      case OpKind::Permute: {
        const auto& axes = expr_.attr<std::vector<int64_t>>("axes");
        for (size_t i = 0; i < rank_; ++i) indices_[static_cast<size_t>(axes[i])] = position(i);
        return;
      }
      case OpKind::Slice: {
        const auto& starts = expr_.attr<std::vector<Size>>("starts");
        const auto* steps = std::get_if<std::vector<int64_t>>(expr_.find("steps"));
        for (size_t i = 0; i < rank_; ++i) {
          const int64_t step = steps == nullptr || steps->empty() ? 1 : (*steps)[i];
          Index& index = indices_[i] = position(i);
          if (index != kNoValue && step != 1) index = b().pointwise("mul", {index, integer(step)});
          if (!starts[i].isConstant(0)) {
            index = b().pointwise("add", {tensorOf(index), scalarFrom(b(), starts[i])});
          }
        }
        return;
      }
      case OpKind::Diagonal: {
        const auto one = static_cast<size_t>(expr_.attr<int64_t>("axis1"));
        const auto other = static_cast<size_t>(expr_.attr<int64_t>("axis2"));
        size_t next = 0;
        for (size_t i = 0; i < operand_.rank(); ++i) {
          indices_[i] = position(i == one || i == other ? rank_ - 1 : next++);
        }
        return;
      }
      case OpKind::Reshape:
        for (const ReshapeGroup& group : reshapeGroups(operand_, old_.tensor)) findInGroup(group);
        return;
      case OpKind::Set:
        for (size_t i = 0; i < rank_; ++i) indices_[i] = position(i);
        return;
      default:
        HEDDLE_CHECK(false, "{} does not pick elements", expr_.op->name);
    }
  }

  void findComputedIndices() {
    const std::vector<IndexedAxis> axes = indexedAxesOf(from_, expr_);
    for (size_t i = 0; i < axes.size(); ++i) {
      Index& index = indices_[i];
      if (axes[i].output_axis == IndexedAxis::kByValue) {
        index = givenIndex();
      } else {
        index = position(static_cast<size_t>(axes[i].output_axis));
      }
      if (axes[i].reversed && index != kNoValue) {
        const ValueId last = b().pointwise("sub", {extentOf(i), integer(1)});
        index = b().pointwise("sub", {last, index});
      }
      if (!axes[i].low.isConstant(0)) {
        index = b().pointwise("sub", {tensorOf(index), scalarFrom(b(), axes[i].low)});
      }
      if (!axes[i].mayMiss()) continue;
      index = tensorOf(index);
      require(b().pointwise("ge", {index, integer(0)}));
      require(b().pointwise("lt", {index, extentOf(i)}));
    }
  }

  // Sets the indices along the operand axes of a group (ir/analysis/reshape_order.h). They follow
  // from the row-major index of the element in the result axes of the group.
  void findInGroup(const ReshapeGroup& group) {
    Index row = kNoValue;
    for (size_t i = group.out_begin; i < group.out_end; ++i) {
      const Index index = position(i);
      if (index == kNoValue) continue;
      if (row == kNoValue) {
        row = index;
        continue;
      }
      const ValueId count = old_.tensor.domain[i].extent.isConstant()
                                ? integer(old_.tensor.domain[i].extent.constant())
                                : b().sizeOf(index, static_cast<int64_t>(i));
      row = b().pointwise("add", {b().pointwise("mul", {row, count}), index});
    }
    if (row == kNoValue) return;
    size_t first = group.in_begin;  // the first axis with several elements
    while (first + 1 < group.in_end && hasOneElement(operand_, first)) ++first;
    for (size_t i = group.in_end; i-- > first;) {
      if (hasOneElement(operand_, i)) continue;
      indices_[i] = i == first ? row : b().pointwise("remainder", {row, extentOf(i)});
      if (i != first) row = b().pointwise("div_floor", {row, extentOf(i)});
    }
  }

  // Returns operand 1 of a take or take_along_axis as an index of the elements of the result.
  Index givenIndex() {
    const ValueId given = expr_.inputs[1];
    const TensorView tensor = from_.tensor(given);
    const size_t first = expr_.op->name == "take" ? expr_.axis() : 0;
    std::vector<size_t> axes(tensor.rank());
    std::iota(axes.begin(), axes.end(), first);
    ValueId index = rewriter_.at(given);
    if (is_generated_(index)) {
      std::vector<Index> at;
      for (size_t axis : axes) at.push_back(position(axis));
      index = pick(index, at);
    } else {
      if (old_.tensor.sharding) index = moved(index, axes);
      index = broadcast(index, axes);
    }
    return tensor.dtype == DType::I64 ? index : b().cast(index, DType::I64);
  }

  // Returns the index tensor in the sharding of the result. Without this move, insertResharding
  // would move several values that are computed from the index. Axis i of the index is axis axes[i]
  // of the result.
  ValueId moved(ValueId index, const std::vector<size_t>& axes) {
    Sharding wanted = shardingOf(index, axes);
    if (now().tensor(index).sharding == wanted) return index;
    const ValueId result = b().set(index);
    rewriter_.fusion().setSharding(result, std::move(wanted));
    return result;
  }

  // Returns the index of the elements of the result along an axis of the result.
  Index position(size_t axis) {
    if (hasOneElement(old_.tensor, axis)) return kNoValue;
    const auto found = positions_.find(axis);
    if (found != positions_.end()) return found->second;
    int64_t at = 0;  // the axis of the iota
    for (size_t i = 0; i < axis; ++i) at += isPlainUnit(i) ? 1 : 0;
    return positions_[axis] =
               spread([&](size_t i) { return i == axis || isPlainUnit(i); },
                      [&](const std::vector<Size>& sizes) { return b().iota(sizes, at); });
  }

  ValueId tensorOf(Index index) {
    return index == kNoValue ? constantTensor(integer(0), DType::I64) : index;
  }

  // Returns the extent of an axis of the operand as a scalar.
  ValueId extentOf(size_t axis) {
    const Size& extent = operand_.domain[axis].extent;
    if (extent.isConstant()) return integer(extent.constant());
    return b().sizeOf(rewriter_.at(expr_.inputs[0]), static_cast<int64_t>(axis));
  }

  void require(ValueId condition) {
    valid_ = valid_ == kNoValue ? condition : b().pointwise("logical_and", {valid_, condition});
  }

  // --- the selected elements --------------------------------------------------------------------

  // Returns the elements of `id`, a generated value of the new fusion, at these indices. There is
  // one index per axis of `id`.
  ValueId pick(ValueId id, const std::vector<Index>& indices) {
    if (now().value(id).is_scalar) return id;
    const auto found = picked_.find({id, indices});
    if (found != picked_.end()) return found->second;
    const Expression expr = now().expr(now().value(id).definition);  // a copy: pick() appends
    const ValueId result = compute(id, expr, indices);
    picked_.emplace(std::pair(id, indices), result);
    return result;
  }

  ValueId compute(ValueId id, const Expression& expr, const std::vector<Index>& indices) {
    switch (expr.op->kind) {
      case OpKind::Iota:
        return tensorOf(indices[expr.axis()]);
      case OpKind::Full:
        return constantTensor(expr.inputs[0], now().tensor(id).dtype);
      case OpKind::Broadcast: {
        const auto& added = expr.attr<std::vector<int64_t>>("axes");
        std::vector<Index> kept;
        for (size_t i = 0; i < indices.size(); ++i) {
          const bool is_new =
              std::binary_search(added.begin(), added.end(), static_cast<int64_t>(i));
          if (!is_new) kept.push_back(indices[i]);
        }
        return pick(expr.inputs[0], kept);
      }
      case OpKind::Expand:
        return pick(expr.inputs[0], indicesOf(expr.inputs[0], indices));
      default: {
        std::vector<ValueId> operands;
        for (ValueId input : expr.inputs) {
          operands.push_back(pick(input, indicesOf(input, indices)));
        }
        return b().apply(expr.op->name, std::move(operands), expr.attrs);
      }
    }
  }

  // Returns the indices of the operand's elements. If the expression stretches an axis, the operand
  // has one element along it, with the index 0.
  std::vector<Index> indicesOf(ValueId operand, std::vector<Index> indices) const {
    const TensorView& tensor = now().tensor(operand);
    if (tensor.rank() == 0) return {};
    for (size_t i = 0; i < indices.size(); ++i) {
      if (hasOneElement(tensor, i)) indices[i] = kNoValue;
    }
    return indices;
  }

  // Returns a tensor in which all elements have the value of a scalar.
  ValueId constantTensor(ValueId scalar, DType dtype) {
    const auto create = [&](const std::vector<Size>& sizes) {
      return b().full(scalar, sizes, dtype);
    };
    return spread([&](size_t axis) { return isPlainUnit(axis); }, create);
  }

  // Returns whether this axis of the result is an ordinary axis of one element. Tensors that do not
  // depend on the axis then have an ordinary axis too. If all operands had a broadcast axis, the
  // result would have one, and its type would change.
  bool isPlainUnit(size_t axis) const {
    return hasOneElement(old_.tensor, axis) && old_.tensor.domain[axis].kind != IterKind::Broadcast;
  }

  // Creates a tensor that has the axes of the result for which `keeps` is true, and a broadcast
  // axis for each other axis of the result. `create` appends the tensor without broadcast axes.
  template <class Keeps, class Create>
  ValueId spread(const Keeps& keeps, const Create& create) {
    std::vector<Size> sizes;
    std::vector<size_t> kept;
    for (size_t i = 0; i < rank_; ++i) {
      if (!keeps(i)) continue;
      sizes.push_back(old_.tensor.domain[i].extent);
      kept.push_back(i);
    }
    const ValueId tensor = create(sizes);
    if (old_.tensor.sharding) rewriter_.fusion().setSharding(tensor, shardingOf(tensor, kept));
    return broadcast(tensor, kept);
  }

  // Adds a broadcast axis for each axis of the result that is not in `kept`.
  ValueId broadcast(ValueId tensor, const std::vector<size_t>& kept) {
    std::vector<int64_t> added;
    for (size_t i = 0; i < rank_; ++i) {
      if (!std::binary_search(kept.begin(), kept.end(), i))
        added.push_back(static_cast<int64_t>(i));
    }
    return added.empty() ? tensor : b().broadcast(tensor, added);
  }

  // --- the result -------------------------------------------------------------------------------

  // Returns the result if no index can be out of range. `value` is new, so it can get the name of
  // the result. A `set` instead would be a view, which needs its operand in memory.
  ValueId stretched(ValueId value) {
    if (now().tensor(value).domain == old_.tensor.domain) {
      b().rename(value, old_.name);
      return value;
    }
    b().name(old_.name).line(expr_.line);
    return b().expand(value, old_.tensor.sizes());
  }

  // Returns the result: `value` where the indices are in range, and the fill value elsewhere.
  ValueId filled(ValueId value) {
    const DType dtype = old_.tensor.dtype;
    const bool is_pad = expr_.op->name == "pad";
    const ValueId scalar = is_pad ? rewriter_.at(expr_.inputs[1]) : b().constant(missing(dtype));
    // `fill` has the extents of the result. The result of `where` therefore has them too, even if
    // `value` and `valid_` have a broadcast axis.
    ValueId fill =
        spread([&](size_t axis) { return old_.tensor.domain[axis].kind != IterKind::Broadcast; },
               [&](const std::vector<Size>& sizes) { return b().full(scalar, sizes, dtype); });
    const bool is_float8 = isFloat(dtype) && sizeOf(dtype) == 1;
    if (is_float8) {  // `where` accepts no f8
      value = b().cast(value, DType::F32);
      fill = b().cast(fill, DType::F32);
      const ValueId wide = b().pointwise("where", {valid_, value, fill});
      b().name(old_.name).line(expr_.line);
      return b().cast(wide, dtype);
    }
    b().name(old_.name).line(expr_.line);
    return b().pointwise("where", {valid_, value, fill});
  }

  static Scalar missing(DType dtype) {
    if (isFloat(dtype)) return std::numeric_limits<double>::quiet_NaN();
    return dtype == DType::Bool ? Scalar(false) : Scalar(int64_t{0});
  }

  // --- shardings --------------------------------------------------------------------------------

  // Returns the sharding of a tensor of the new fusion that follows from the sharding of the
  // result. Axis i of the tensor is axis axes[i] of the result. Broadcast axes are not split.
  Sharding shardingOf(ValueId tensor, const std::vector<size_t>& axes) const {
    const Sharding& result = *old_.tensor.sharding;
    Sharding sharding{.mesh = result.mesh, .axes = {}, .partial = {}, .stream = {}};
    sharding.axes.resize(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool is_broadcast = now().tensor(tensor).domain[i].kind == IterKind::Broadcast;
      if (!is_broadcast) sharding.axes[i] = result.axes.at(axes[i]);
    }
    return sharding;
  }

  // Gives shardings to all tensors with an id of at least `first` that have none. A tensor whose
  // rank differs from that of the result only carries a size, so it is replicated.
  void placeFrom(ValueId first) {
    if (!old_.tensor.sharding) return;
    std::vector<size_t> all(rank_);
    std::iota(all.begin(), all.end(), size_t{0});
    for (ValueId id : IdRange(first, now().values().endId())) {
      if (now().value(id).is_scalar || now().tensor(id).sharding) continue;
      const size_t rank = now().tensor(id).rank();
      Sharding sharding = shardingOf(id, rank == rank_ ? all : std::vector<size_t>{});
      sharding.axes.resize(rank);
      rewriter_.fusion().setSharding(id, std::move(sharding));
    }
  }

  const Expression& expr_;
  const TensorView& operand_;
  const Value& old_;  // the result in the old fusion
  const Fusion& from_;
  const std::function<bool(ValueId)>& is_generated_;
  FusionRewriter& rewriter_;
  const size_t rank_;
  std::vector<Index> indices_;  // per axis of the operand
  ValueId valid_ = kNoValue;    // whether all indices are in range; kNoValue: they are
  std::map<size_t, Index> positions_;
  std::map<std::pair<ValueId, std::vector<Index>>, ValueId> picked_;
};

}  // namespace

bool picksElements(const Expression& expr) {
  constexpr OpKind kKinds[] = {OpKind::Index,    OpKind::Permute, OpKind::Slice,
                               OpKind::Diagonal, OpKind::Reshape, OpKind::Set};
  return std::find(std::begin(kKinds), std::end(kKinds), expr.op->kind) != std::end(kKinds);
}

bool generates(OpKind kind) {
  constexpr OpKind kKinds[] = {OpKind::Iota, OpKind::Full, OpKind::Pointwise, OpKind::Broadcast,
                               OpKind::Expand};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

void pickElements(const Fusion& from, ExprId expr, const std::function<bool(ValueId)>& is_generated,
                  FusionRewriter& rewriter) {
  ElementWriter(from, from.expr(expr), is_generated, rewriter).write();
}

}  // namespace heddle
