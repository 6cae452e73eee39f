// FusionBuilder: the ops take_along_axis, scatter and scatter_add.
#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle {
namespace {

Value linesResult(DType dtype, std::vector<IterDomain> domain) {
  Value value;
  value.tensor.dtype = dtype;
  value.tensor.domain = std::move(domain);
  return value;
}

bool areNumbers(const Size& a, const Size& b) { return a.isConstant() && b.isConstant(); }

}  // namespace

// Slices `value` to the sizes of `index`, because take_along_axis and scatter read no elements
// beyond these sizes. Along `whole_axis` (-1: none) the function keeps all elements. If an extent
// of `value` or `index` is symbolic, both extents must be equal.
ValueId FusionBuilder::cutToIndex(std::string_view op_name, ValueId value, ValueId index,
                                  int64_t whole_axis) {
  const std::vector<Size> sizes = fusion_.tensor(value).sizes();
  std::vector<Size> stops = sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<int64_t>(i) == whole_axis) continue;
    const Size& wanted = fusion_.tensor(index).domain[i].extent;
    if (!areNumbers(sizes[i], wanted)) {
      agree(op_name, value, i, index, i);
      continue;
    }
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, wanted.constant() <= sizes[i].constant(),
                           "{}: the index {} is larger than {} along axis {}", where(op_name),
                           typeOf(index), typeOf(value), i);
    stops[i] = wanted;
  }
  if (stops == sizes) return value;
  return slice(value, std::vector<Size>(sizes.size(), Size(0)), stops);
}

// Pads `value` with `fill` to the sizes of `model`, except along the axis `but_axis` and along axes
// with a symbolic extent. The padding comes after the elements.
ValueId FusionBuilder::grownTo(ValueId value, ValueId model, int64_t but_axis, Scalar fill) {
  const std::vector<Size> sizes = fusion_.tensor(value).sizes();
  std::vector<Size> highs(sizes.size(), 0);
  bool grows = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Size& wanted = fusion_.tensor(model).domain[i].extent;
    if (static_cast<int64_t>(i) == but_axis || !areNumbers(sizes[i], wanted)) continue;
    highs[i] = wanted.constant() - sizes[i].constant();
    grows = grows || highs[i].constant() > 0;
  }
  if (!grows) return value;
  return pad(value, std::vector<Size>(sizes.size(), 0), highs, constant(fill));
}

ValueId FusionBuilder::takeAlongAxis(ValueId value, ValueId index, int64_t axis) {
  const char* name = "take_along_axis";
  const size_t rank = tensorOf(name, value).rank();
  const size_t index_rank = indexOf(name, index).rank();
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, rank == index_rank || std::max(rank, index_rank) == 1,
                         "{}: {} and its index {} differ in rank", where(name), typeOf(value),
                         typeOf(index));
  const std::vector<int64_t> axes = normalizeAxes(name, {axis}, rank);
  axis = axes.empty() ? 0 : axes[0];
  std::string result_name = std::exchange(pending_name_, "");
  if (std::max(rank, index_rank) <= 1) {
    value = asLine(value);
    index = asLine(index);
  }
  value = cutToIndex(name, value, index, axis);
  if (index_rank > 0) pending_name_ = std::move(result_name);
  const ValueId lines =
      append(op(name), {value, index}, {{"axis", axis}},
             linesResult(fusion_.tensor(value).dtype, fusion_.tensor(index).domain));
  if (index_rank > 0) return lines;
  pending_name_ = std::move(result_name);
  return withoutAxis(lines, 0);
}

ValueId FusionBuilder::scatter(ValueId value, ValueId index, ValueId source, int64_t axis,
                               bool stretch) {
  return scatterBy("scatter", value, index, source, axis, stretch);
}

ValueId FusionBuilder::scatterAdd(ValueId value, ValueId index, ValueId source, int64_t axis,
                                  bool stretch) {
  return scatterBy("scatter_add", value, index, source, axis, stretch);
}

ValueId FusionBuilder::scatterBy(std::string_view op_name, ValueId value, ValueId index,
                                 ValueId source, int64_t axis, bool stretch) {
  const TensorView tensor = tensorOf(op_name, value);
  const size_t index_rank = indexOf(op_name, index).rank();
  const size_t source_rank = tensorOf(op_name, source).rank();
  if (op_name == "scatter_add") refuseFloat8(op_name, value);
  const size_t most = std::max({tensor.rank(), index_rank, source_rank});
  HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                         most <= 1 || (index_rank == tensor.rank() && source_rank == tensor.rank()),
                         "{}: {}, its index {} and its source {} differ in rank", where(op_name),
                         typeOf(value), typeOf(index), typeOf(source));
  HEDDLE_USER_CHECK_CODE(Type, fusion_.tensor(source).dtype == tensor.dtype,
                         "{}: {} and its source {} differ in dtype", where(op_name), typeOf(value),
                         typeOf(source));
  const std::vector<int64_t> axes = normalizeAxes(op_name, {axis}, tensor.rank());
  axis = axes.empty() ? 0 : axes[0];
  std::string result_name = std::exchange(pending_name_, "");
  if (most <= 1) {
    value = asLine(value);
    index = asLine(index);
    source = asLine(source);
  }
  fitScatter(op_name, value, index, source, axis, stretch);
  if (tensor.rank() > 0) pending_name_ = std::move(result_name);
  Attrs attrs = {{"axis", axis}};
  if (stretch) attrs.emplace_back("stretch", true);
  const ValueId lines = append(op(op_name), {value, index, source}, std::move(attrs),
                               linesResult(tensor.dtype, fusion_.tensor(value).domain));
  if (tensor.rank() > 0) return lines;
  pending_name_ = std::move(result_name);
  return withoutAxis(lines, 0);
}

// Slices `source` to the sizes of `index`. Then pads source and index to the sizes of `value` along
// all axes except `axis`. The index is padded with -1, because an element with index -1 is not
// stored. Then checks the sizes. With `stretch`, the function only checks the sizes.
void FusionBuilder::fitScatter(std::string_view op_name, ValueId value, ValueId& index,
                               ValueId& source, int64_t axis, bool stretch) {
  if (!stretch) {
    source = cutToIndex(op_name, source, index, -1);
    for (size_t i = 0; i < fusion_.tensor(value).rank(); ++i) {
      const Size& mine = fusion_.tensor(value).domain[i].extent;
      const Size& theirs = fusion_.tensor(index).domain[i].extent;
      if (static_cast<int64_t>(i) == axis || !areNumbers(mine, theirs)) continue;
      HEDDLE_USER_CHECK_CODE(ShapeMismatch, theirs.constant() <= mine.constant(),
                             "{}: the index {} is larger than {} along axis {}", where(op_name),
                             typeOf(index), typeOf(value), i);
    }
    index = grownTo(index, value, axis, int64_t{-1});
    source = grownTo(source, value, axis, int64_t{0});
  }
  for (size_t i = 0; i < fusion_.tensor(value).rank(); ++i) {
    if (static_cast<int64_t>(i) != axis) agree(op_name, value, i, source, i);
    const bool stretched = stretch && fusion_.tensor(index).domain[i].extent.isConstant(1);
    if (stretch && !stretched) agree(op_name, source, i, index, i);
  }
}

}  // namespace heddle
