#include "tools/random/random_ops.h"

#include <algorithm>
#include <limits>

#include "ir/base/check.h"
#include "ir/composite/composite.h"

namespace heddle::random {
namespace {

bool isIndexedKind(OpKind kind) {
  return kind == OpKind::Full || kind == OpKind::Iota || kind == OpKind::Index ||
         kind == OpKind::Scan || kind == OpKind::Scatter;
}

std::vector<const OpDef*> rowsOf(bool (*belongs)(OpKind)) {
  std::vector<const OpDef*> rows;
  for (const OpDef& row : opTable()) {
    if (belongs(row.kind) && OpMaker::knows(row)) rows.push_back(&row);
  }
  return rows;
}

const std::vector<const OpDef*>& pointwiseRows() {
  static const auto rows = rowsOf([](OpKind kind) { return kind == OpKind::Pointwise; });
  return rows;
}
const std::vector<const OpDef*>& reductionRows() {
  static const auto rows = rowsOf([](OpKind kind) { return kind == OpKind::Reduction; });
  return rows;
}
const std::vector<const OpDef*>& indexedRows() {
  static const auto rows = rowsOf(isIndexedKind);
  return rows;
}
const std::vector<const OpDef*>& structuralRows() {
  static const auto rows = rowsOf([](OpKind kind) {
    return kind == OpKind::Broadcast || kind == OpKind::Expand || kind == OpKind::Reshape ||
           kind == OpKind::Permute || kind == OpKind::Slice || kind == OpKind::Diagonal ||
           kind == OpKind::Set || kind == OpKind::SizeOf;
  });
  return rows;
}

bool canMakeAttrs(const OpDef& op) {
  return std::all_of(op.attrs.begin(), op.attrs.end(), [](const AttrSpec& spec) {
    return !spec.required || (spec.type != AttrType::Name && spec.type != AttrType::Ints &&
                              spec.type != AttrType::Sizes);
  });
}

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string_view> unknownRows() {
  std::vector<std::string_view> rows;
  for (const OpDef& row : opTable()) {
    if (!OpMaker::knows(row)) rows.push_back(row.name);
  }
  return rows;
}

bool OpMaker::knows(const OpDef& op) {
  switch (op.kind) {
    case OpKind::Pointwise:
      return op.arity >= 1 && canMakeAttrs(op);
    case OpKind::Reduction:
    case OpKind::Constant:
    case OpKind::SizeOf:
    case OpKind::Broadcast:
    case OpKind::Expand:
    case OpKind::Reshape:
    case OpKind::Permute:
    case OpKind::Slice:
    case OpKind::Diagonal:
    case OpKind::Full:
    case OpKind::Iota:
    case OpKind::Set:
      return true;
    case OpKind::Index:
      return isOneOf(op.name, {"flip", "pad", "take", "take_along_axis"});
    case OpKind::Matmul:
      return isOneOf(op.name, {"matmul", "linear"});
    case OpKind::Scan:
      return isOneOf(op.name, {"cumsum", "argsort"});
    case OpKind::Scatter:
      return isOneOf(op.name, {"scatter", "scatter_add"});
  }
  return false;
}

DType randomDType(Choices& choices) {
  if (choices.oneIn(3)) return DType::F32;
  return kAllDTypes[choices.below(static_cast<int64_t>(std::size(kAllDTypes)))];
}

bool OpMaker::make() {
  const int64_t what = choices_.below(100);
  if (what < 55) return pointwise(*choices_.pick(pointwiseRows()));
  if (what < 65) return reduction(*choices_.pick(reductionRows()));
  if (what < 83) return structural(*choices_.pick(structuralRows()));
  if (what < 87) return !isLeftOut(OpKind::Matmul) && matmul();
  if (what < 91) return composite();
  const OpDef& op = *choices_.pick(indexedRows());
  return !isLeftOut(op.kind) && indexed(op);
}

bool OpMaker::isLeftOut(OpKind kind) const {
  return std::find(context_.without.begin(), context_.without.end(), kind) !=
         context_.without.end();
}

ValueId OpMaker::tensor(bool with_axes) {
  const auto count = static_cast<int64_t>(context_.values.size());
  for (int64_t tries = 4 * count; tries > 0; --tries) {
    // Choose the later half of the values more often, so that long chains of ops are created.
    const int64_t from = choices_.oneIn(2) ? count / 2 : 0;
    const auto id = ValueId(choices_.between(from, count - 1));
    if (!b_.fusion().value(id).is_scalar && (!with_axes || rank(id) > 0)) return id;
  }
  userError("no tensor fits");
}

int64_t OpMaker::axisOf(ValueId id) { return choices_.below(static_cast<int64_t>(rank(id))); }

Scalar OpMaker::literal() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (choices_.oneIn(12)) {
    return choices_.pick<double>({std::numeric_limits<double>::quiet_NaN(), kInf, -kInf, -0.0});
  }
  if (choices_.oneIn(8)) return choices_.oneIn(2);
  if (choices_.oneIn(3)) return choices_.pick<int64_t>({0, 1, -1, 2, 3, 7});
  return choices_.pick<double>({0.5, -0.0, 0.0, 1.0, 2.0, 3.0, -1.5, 1e-3, 0.1, 3.25});
}

ValueId OpMaker::scalar() {
  for (int tries = 3; tries > 0; --tries) {
    const auto id = ValueId(choices_.below(static_cast<int64_t>(context_.values.size())));
    if (b_.fusion().value(id).is_scalar) return id;
  }
  return b_.constant(literal());
}

ValueId OpMaker::partner(ValueId x) {
  if (choices_.oneIn(4)) return scalar();
  const std::vector<Size> sizes = b_.fusion().tensor(x).sizes();
  for (int tries = 30; tries > 0; --tries) {
    const ValueId y = tensor();
    const std::vector<Size> other = b_.fusion().tensor(y).sizes();
    bool fits = true;
    for (size_t i = 1; i <= std::min(sizes.size(), other.size()); ++i) {
      const int64_t a = number(sizes[sizes.size() - i]);
      const int64_t c = number(other[other.size() - i]);
      // Only a constant extent of 1 is stretched. A symbol with the value 1 is not.
      const bool stretches =
          sizes[sizes.size() - i].isConstant(1) || other[other.size() - i].isConstant(1);
      fits = fits && (a == c || stretches);
    }
    if (fits) return y;
  }
  return x;
}

bool OpMaker::randomAttrs(const OpDef& op, Attrs& attrs) {
  for (const AttrSpec& spec : op.attrs) {
    if (!spec.required && choices_.oneIn(2)) continue;
    const std::string key(spec.name);
    switch (spec.type) {
      case AttrType::Bool:
        attrs.emplace_back(key, choices_.oneIn(2));
        break;
      case AttrType::Int:
        attrs.emplace_back(key, choices_.between(0, 3));
        break;
      case AttrType::Float:
        attrs.emplace_back(key, choices_.pick<double>({0.5, 1.0, 2.0, 0.01, -1.0}));
        break;
      case AttrType::Literal:
        std::visit([&](auto v) { attrs.emplace_back(key, v); }, literal());
        break;
      case AttrType::DType:
        attrs.emplace_back(key, randomDType(choices_));
        break;
      case AttrType::Name:
      case AttrType::Ints:
      case AttrType::Sizes:
      case AttrType::Size:
      case AttrType::Number:
        if (spec.required) return false;
        break;
    }
  }
  return true;
}

bool OpMaker::pointwise(const OpDef& op) {
  std::vector<ValueId> operands;
  if (choices_.oneIn(40)) {  // an op on scalars, which the host computes
    for (int i = 0; i < op.arity; ++i) operands.push_back(scalar());
  } else {
    operands.push_back(tensor());
    for (int i = 1; i < op.arity; ++i) operands.push_back(partner(operands[0]));
    choices_.shuffle(operands);
  }
  for (int i = 0; i < op.bool_operands; ++i) {
    ValueId& condition = operands[i];
    if (b_.fusion().tensor(condition).dtype == DType::Bool) continue;
    condition = b_.pointwise(choices_.pick({"lt", "ge", "ne"}), {condition, b_.constant(0.25)});
  }
  Attrs attrs;
  if (!randomAttrs(op, attrs)) return false;
  b_.apply(op.name, operands, attrs);
  return true;
}

bool OpMaker::composite() {
  const ValueId x = tensor(true);
  switch (choices_.below(4)) {
    case 0:
      softmax(b_, x, axisOf(x));
      return true;
    case 1:
      gelu(b_, x, choices_.pick({GeluKind::None, GeluKind::Tanh}));
      return true;
    case 2:
      swiglu(b_, x, partner(x));
      return true;
    default: {
      const ValueId weight = tensor(true);
      if (rank(weight) != 1 || number(b_.fusion().tensor(weight).sizes()[0]) !=
                                   number(b_.fusion().tensor(x).sizes().back())) {
        return false;
      }
      layerNorm(b_, x, weight, weight);
      return true;
    }
  }
}

bool OpMaker::reduction(const OpDef& op) {
  const ValueId x = tensor(true);
  AxisOrder axes = rowMajor(rank(x));
  choices_.shuffle(axes);
  axes.resize(choices_.between(1, choices_.oneIn(3) ? static_cast<int64_t>(axes.size()) : 1));
  b_.reduce(op.name, x, axes, choices_.oneIn(2));
  return true;
}

}  // namespace heddle::random
