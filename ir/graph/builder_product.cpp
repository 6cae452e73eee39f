// FusionBuilder: matmul and linear.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle {
namespace {

// Returns the attributes of the options that differ from their defaults. Defaults are omitted, so
// that equal fusions have equal texts.
std::vector<std::pair<std::string, Attr>> attrsOf(const ProductOptions& options, DType of_operands,
                                                  DType result) {
  std::vector<std::pair<std::string, Attr>> attrs;
  if (result != of_operands) attrs.emplace_back("dtype", result);
  if (options.activation != "none") attrs.emplace_back("activation", options.activation);
  if (options.precision != "full") attrs.emplace_back("precision", options.precision);
  return attrs;
}

Value productResult(DType dtype, std::vector<IterDomain> domain) {
  Value value;
  value.tensor.dtype = dtype;
  value.tensor.domain = std::move(domain);
  for (IterDomain& axis : value.tensor.domain) axis.kind = IterKind::Iteration;
  return value;
}

}  // namespace

// Returns the dtype of the result: ProductOptions::dtype if it is set (f8 operands), otherwise the
// dtype of the operands.
DType FusionBuilder::productType(std::string_view op_name, const std::vector<ValueId>& operands,
                                 const ProductOptions& options) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    const ValueId id = operands[i];
    HEDDLE_USER_CHECK(tensorOf(op_name, id).rank() >= 1 || i == 2, "{}: {} needs an axis or more",
                      where(op_name), typeOf(id));
  }
  const DType a = fusion_.tensor(operands[0]).dtype;
  const DType b = fusion_.tensor(operands[1]).dtype;
  const DType result = options.dtype.value_or(a);
  HEDDLE_USER_CHECK_CODE(Type, a == b || (isFloat8(a) && isFloat8(b)),
                         "{}: {} and {} have different dtypes", where(op_name), typeOf(operands[0]),
                         typeOf(operands[1]));
  HEDDLE_USER_CHECK_CODE(Type, a == b || options.dtype,
                         "{}: {} and {} have different f8 types: set dtype=f32, "
                         "bf16 or f16",
                         where(op_name), typeOf(operands[0]), typeOf(operands[1]));
  const bool half = result == DType::F16 || result == DType::BF16;
  HEDDLE_USER_CHECK((result == a && a == b) || (isFloat8(a) && (half || result == DType::F32)),
                    "{}: dtype={} of {}; f32, bf16 and f16 are for operands of f8 types",
                    where(op_name), heddle::name(result), typeOf(operands[0]));
  if (operands.size() == 2) return result;
  HEDDLE_USER_CHECK_CODE(
      Type, fusion_.tensor(operands[2]).dtype == result, "{}: {} and {} have different dtypes",
      where(op_name),
      isFloat8(a) ? fmt::format("the {} result", heddle::name(result)) : typeOf(operands[0]),
      typeOf(operands[2]));
  return result;
}

DType FusionBuilder::checkProduct(std::string_view op_name, const std::vector<ValueId>& operands,
                                  const ProductOptions& options) const {
  const DType result = productType(op_name, operands, options);
  const DType dtype = fusion_.tensor(operands[0]).dtype;
  const std::string& activation = options.activation;
  HEDDLE_USER_CHECK(activation == "none" || activation == "relu" || activation == "gelu_tanh",
                    "{}: found activation={}, expected none, relu or gelu_tanh", where(op_name),
                    activation);
  HEDDLE_USER_CHECK_CODE(Type, activation != "gelu_tanh" || isFloat(dtype),
                         "{}: activation=gelu_tanh is for float types, {} is not", where(op_name),
                         typeOf(operands[0]));
  HEDDLE_USER_CHECK(options.precision == "full" || options.precision == "tf32",
                    "{}: found precision={}, expected full or tf32", where(op_name),
                    options.precision);
  HEDDLE_USER_CHECK_CODE(Type, options.precision == "full" || dtype == DType::F32,
                         "{}: precision=tf32 is for f32, {} is not", where(op_name),
                         typeOf(operands[0]));
  return result;
}

// withAxis() adds an axis of one element to a value, and withoutAxis() removes one.
ValueId FusionBuilder::withAxis(ValueId value, size_t axis) {
  std::vector<Size> sizes = fusion_.tensor(value).sizes();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), Size(1));
  return reshape(value, std::move(sizes));
}

ValueId FusionBuilder::withoutAxis(ValueId value, size_t axis) {
  std::vector<Size> sizes = fusion_.tensor(value).sizes();
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
  return reshape(value, std::move(sizes));
}

// Returns a batch axis of the result. `from_right` is its distance from the last axis of `a` and
// `b`. An operand may lack the axis, or be broadcast along it.
IterDomain FusionBuilder::batchAxis(ValueId a, ValueId b, size_t from_right) {
  const size_t a_rank = fusion_.tensor(a).rank();
  const size_t b_rank = fusion_.tensor(b).rank();
  if (from_right >= a_rank) return fusion_.tensor(b).domain[b_rank - 1 - from_right];
  const IterDomain& of_a = fusion_.tensor(a).domain[a_rank - 1 - from_right];
  if (from_right >= b_rank) return of_a;
  const IterDomain& of_b = fusion_.tensor(b).domain[b_rank - 1 - from_right];
  if (of_a.extent.isConstant(1)) return of_b;
  if (of_b.extent.isConstant(1)) return of_a;
  const bool a_is_symbolic = of_a.kind == IterKind::Symbolic;
  const bool b_is_symbolic = of_b.kind == IterKind::Symbolic;
  if (a_is_symbolic && b_is_symbolic) return symbolicAxis({of_a.extent, of_b.extent});
  if (a_is_symbolic || b_is_symbolic) return a_is_symbolic ? of_b : of_a;
  agree("matmul", a, a_rank - 1 - from_right, b, b_rank - 1 - from_right);
  return of_a;
}

ValueId FusionBuilder::matmul(ValueId a, ValueId b, const ProductOptions& options) {
  const DType dtype = checkProduct("matmul", {a, b}, options);
  const bool row = fusion_.tensor(a).rank() == 1;
  const bool column = fusion_.tensor(b).rank() == 1;
  agree("matmul", a, fusion_.tensor(a).rank() - 1, b, column ? 0 : fusion_.tensor(b).rank() - 2);
  std::string result_name = std::exchange(pending_name_, "");
  if (row) a = withAxis(a, 0);
  if (column) b = withAxis(b, 1);
  const size_t rank = std::max(fusion_.tensor(a).rank(), fusion_.tensor(b).rank());
  std::vector<IterDomain> domain;
  for (size_t axis = 0; axis + 2 < rank; ++axis) domain.push_back(batchAxis(a, b, rank - 1 - axis));
  domain.push_back(fusion_.tensor(a).domain[fusion_.tensor(a).rank() - 2]);
  domain.push_back(fusion_.tensor(b).domain.back());
  if (!row && !column) pending_name_ = result_name;
  ValueId result = append(op("matmul"), {a, b}, attrsOf(options, fusion_.tensor(a).dtype, dtype),
                          productResult(dtype, std::move(domain)));
  if (row && column) {
    pending_name_ = std::move(result_name);
    return reshape(result, {});
  }
  if (!row && !column) return result;
  pending_name_ = std::move(result_name);
  return withoutAxis(result, row ? rank - 2 : rank - 1);
}

// Returns the bias with the shape [n]. A bias of one element is expanded, and so is a bias whose
// size may be 1 in a run.
ValueId FusionBuilder::linearBias(ValueId w, ValueId bias) {
  const TensorView tensor = tensorOf("linear", bias);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, tensor.rank() <= 1, "{}: the bias {} needs one axis",
                         where("linear"), typeOf(bias));
  const Size n = fusion_.tensor(w).domain[0].extent;
  const bool one = tensor.rank() == 0 || tensor.domain[0].extent.isConstant(1);
  if (one && !(tensor.rank() == 1 && n.isConstant(1))) return expand(bias, {n});
  if (tensor.domain[0].kind == IterKind::Symbolic) return expand(bias, {n});
  agree("linear", w, 0, bias, 0);
  return bias;
}

ValueId FusionBuilder::linear(ValueId x, ValueId w, std::optional<ValueId> bias,
                              const ProductOptions& options) {
  std::vector<ValueId> operands{x, w};
  if (bias) operands.push_back(*bias);
  const DType dtype = checkProduct("linear", operands, options);
  const size_t w_rank = fusion_.tensor(w).rank();
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, w_rank == 2 || (w_rank == 1 && !bias),
                         "{}: the weight {} needs two axes, or one without a bias", where("linear"),
                         typeOf(w));
  agree("linear", x, fusion_.tensor(x).rank() - 1, w, w_rank - 1);
  const bool row = fusion_.tensor(x).rank() == 1;
  std::string result_name = std::exchange(pending_name_, "");
  if (w_rank == 1) {
    operands[1] = withAxis(w, 0);
    const ValueId lines = linear(x, operands[1], std::nullopt, options);
    pending_name_ = std::move(result_name);
    return withoutAxis(lines, fusion_.tensor(lines).rank() - 1);
  }
  if (bias) operands[2] = linearBias(w, *bias);
  if (row) operands[0] = withAxis(x, 0);
  std::vector<IterDomain> domain = fusion_.tensor(operands[0]).domain;
  domain.back() = fusion_.tensor(w).domain[0];
  if (!row) pending_name_ = result_name;
  auto attrs = attrsOf(options, fusion_.tensor(x).dtype, dtype);
  const ValueId result = append(op("linear"), std::move(operands), std::move(attrs),
                                productResult(dtype, std::move(domain)));
  if (!row) return result;
  pending_name_ = std::move(result_name);
  return withoutAxis(result, 0);
}

}  // namespace heddle
