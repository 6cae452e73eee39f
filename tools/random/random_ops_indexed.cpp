// Ops that create tensors (full, iota), scans, and ops that read or write elements at other
// indices.
#include <algorithm>

#include "ir/base/check.h"
#include "tools/random/random_ops.h"

namespace heddle::random {

bool OpMaker::indexed(const OpDef& op) {
  if (op.kind == OpKind::Full || op.kind == OpKind::Iota) {
    std::vector<Size> sizes;
    for (int64_t n = choices_.between(1, 3); n > 0; --n)
      sizes.push_back(choices_.pick(context_.extents));
    if (op.kind == OpKind::Full) {
      b_.full(scalar(), sizes, randomDType(choices_));
    } else {
      b_.iota(sizes, choices_.below(static_cast<int64_t>(sizes.size())));
    }
    return true;
  }
  if (op.kind == OpKind::Scan) {
    const ValueId x = tensor(true);
    Attrs attrs = {{"axis", axisOf(x)}};
    if (op.name == "argsort" && choices_.oneIn(2)) attrs.emplace_back("descending", true);
    b_.apply(op.name, {x}, attrs);
    return true;
  }
  if (op.kind == OpKind::Scatter) return scatters(op);
  if (op.name == "pad") return pad();
  if (op.name != "flip") return takes(op);
  const ValueId x = tensor(true);
  AxisOrder axes = rowMajor(rank(x));
  choices_.shuffle(axes);
  axes.resize(choices_.between(1, static_cast<int64_t>(axes.size())));
  b_.flip(x, axes);
  return true;
}

bool OpMaker::pad() {
  const ValueId x = tensor(true);
  const std::vector<Size> sizes = b_.fusion().tensor(x).sizes();
  std::vector<Size> lows(sizes.size(), 0);
  std::vector<Size> highs(sizes.size(), 0);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (choices_.oneIn(2)) continue;
    const int64_t cut = std::min<int64_t>(2, number(sizes[axis]) / 2);
    lows[axis] = choices_.between(-cut, 3);
    highs[axis] = choices_.between(-cut, 3);
  }
  b_.pad(x, lows, highs, scalar());
  return true;
}

// Returns an integer tensor with the sizes `sizes`. Usually its elements are limited to the range
// from 0 to extent - 1, sometimes not.
ValueId OpMaker::indexFor(const std::vector<Size>& sizes, int64_t extent) {
  ValueId index = kNoValue;
  for (int tries = 20; tries > 0 && index == kNoValue; --tries) {
    const ValueId id = tensor();
    const TensorView& view = b_.fusion().tensor(id);
    if ((view.dtype == DType::I64 || view.dtype == DType::I32) && view.sizes() == sizes) index = id;
  }
  if (index == kNoValue) {
    HEDDLE_USER_CHECK(!sizes.empty(), "an index of rank 0 needs a tensor");
    index = b_.iota(sizes, choices_.below(static_cast<int64_t>(sizes.size())));
    if (choices_.oneIn(2)) index = b_.pointwise("mul", {index, b_.constant(int64_t{3})});
  }
  if (choices_.oneIn(8)) return index;
  index = b_.pointwise("maximum", {index, b_.constant(int64_t{0})});
  return b_.pointwise("minimum", {index, b_.constant(extent - 1)});
}

// Chooses an axis, and reduces its extent if this is a constant above 1. Leaves the extent of
// `whole_axis` unchanged.
void OpMaker::shrink(std::vector<Size>& sizes, size_t whole_axis) {
  const size_t axis = choices_.below(static_cast<int64_t>(sizes.size()));
  if (axis == whole_axis || !sizes[axis].isConstant() || sizes[axis].constant() < 2) return;
  sizes[axis] = Size(choices_.between(1, sizes[axis].constant() - 1));
}

bool OpMaker::takes(const OpDef& op) {
  const ValueId x = tensor(true);
  std::vector<Size> sizes = b_.fusion().tensor(x).sizes();
  const size_t axis = axisOf(x);
  const int64_t extent = number(sizes[axis]);
  if (op.name == "take_along_axis") {
    if (choices_.oneIn(2)) sizes[axis] = choices_.pick(context_.extents);
    if (choices_.oneIn(4)) shrink(sizes, axis);
  } else {
    sizes.assign(choices_.between(1, 2), Size(1));
    for (Size& size : sizes) size = choices_.pick(context_.extents);
  }
  b_.apply(op.name, {x, indexFor(sizes, extent)}, {{"axis", static_cast<int64_t>(axis)}});
  return true;
}

bool OpMaker::scatters(const OpDef& op) {
  const ValueId x = tensor(true);
  const size_t axis = axisOf(x);
  const std::vector<Size> sizes = b_.fusion().tensor(x).sizes();
  for (int tries = 40; tries > 0; --tries) {
    const ValueId source = tensor(true);
    const std::vector<Size> from = b_.fusion().tensor(source).sizes();
    bool fits = from.size() == sizes.size() &&
                b_.fusion().tensor(source).dtype == b_.fusion().tensor(x).dtype;
    for (size_t i = 0; fits && i < sizes.size(); ++i) {
      fits = i == axis || number(from[i]) == number(sizes[i]);
    }
    if (!fits) continue;
    std::vector<Size> index = from;
    bool stretches = false;
    const bool smaller = choices_.oneIn(4);
    if (smaller) shrink(index, index.size());
    for (size_t i = 0; i < index.size(); ++i) {
      if (smaller || i == axis || !choices_.oneIn(3)) continue;
      index[i] = Size(1);
      stretches = true;
    }
    Attrs attrs = {{"axis", static_cast<int64_t>(axis)}};
    if (stretches) attrs.emplace_back("stretch", true);
    b_.apply(op.name, {x, indexFor(index, number(sizes[axis])), source}, std::move(attrs));
    return true;
  }
  return false;
}

}  // namespace heddle::random
