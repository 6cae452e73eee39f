// The op table: one row an op. A new pointwise or reduction op is a row here and nothing else.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/edit_distance.h"
#include "ir/error.h"
#include "ir/op.h"

namespace heddle {
namespace {

using K = OpKind;
using R = DTypeRule;

constexpr AttrSpec kValue[] = {{"value", AttrType::Scalar}};
constexpr AttrSpec kAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kAxes[] = {{"axes", AttrType::Ints}};
constexpr AttrSpec kReduce[] = {{"axes", AttrType::Ints}, {"keepdim", AttrType::Bool, false}};
constexpr AttrSpec kSizes[] = {{"sizes", AttrType::Sizes}};
constexpr AttrSpec kSlice[] = {{"starts", AttrType::Sizes}, {"stops", AttrType::Sizes}};
constexpr AttrSpec kDType[] = {{"dtype", AttrType::DType}};

// Unsigned arithmetic wraps, as PyTorch's int64 does, where signed overflow would be undefined.
int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }

double maxNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::max(a[0], a[1]);
}
double minNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::min(a[0], a[1]);
}
int64_t intPow(const int64_t* a) {
  if (a[1] < 0) return a[0] == 1 ? 1 : a[0] == -1 ? (a[1] % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  uint64_t base = u(a[0]);
  for (int64_t e = a[1]; e > 0; e >>= 1, base *= base) {
    if (e & 1) result *= base;
  }
  return wrap(result);
}

using D = const double*;
using I = const int64_t*;

const OpDef kTable[] = {
    // Leaves and structure.
    {"constant", K::Constant, 0, R::Promote, "", nullptr, nullptr, kValue},
    {"size", K::SizeOf, 1, R::Promote, "", nullptr, nullptr, kAxis},
    {"broadcast", K::Broadcast, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"expand", K::Expand, 1, R::Promote, "", nullptr, nullptr, kSizes},
    {"reshape", K::Reshape, 1, R::Promote, "", nullptr, nullptr, kSizes},
    {"permute", K::Permute, 1, R::Promote, "", nullptr, nullptr, kAxes},
    {"slice", K::Slice, 1, R::Promote, "", nullptr, nullptr, kSlice},
    {"matmul", K::Matmul, 2, R::Promote, "", nullptr, nullptr, {}},
    {"set", K::Set, 1, R::Promote, "", nullptr, nullptr, {}},

    // Unary.
    {"cast", K::Pointwise, 1, R::Attribute, "{0}", [](D a) { return a[0]; },
     [](I a) { return a[0]; }, kDType},
    {"neg", K::Pointwise, 1, R::Promote, "(-{0})", [](D a) { return -a[0]; },
     [](I a) { return wrap(0 - u(a[0])); }},
    {"abs", K::Pointwise, 1, R::Promote, "hd::abs({0})", [](D a) { return std::fabs(a[0]); },
     [](I a) { return a[0] < 0 ? wrap(0 - u(a[0])) : a[0]; }},
    {"exp", K::Pointwise, 1, R::PromoteFloat, "hd::exp({0})", [](D a) { return std::exp(a[0]); }},
    {"log", K::Pointwise, 1, R::PromoteFloat, "hd::log({0})", [](D a) { return std::log(a[0]); }},
    {"sqrt", K::Pointwise, 1, R::PromoteFloat, "hd::sqrt({0})",
     [](D a) { return std::sqrt(a[0]); }},
    {"rsqrt", K::Pointwise, 1, R::PromoteFloat, "hd::rsqrt({0})",
     [](D a) { return 1.0 / std::sqrt(a[0]); }},
    {"reciprocal", K::Pointwise, 1, R::PromoteFloat, "(1 / {0})", [](D a) { return 1.0 / a[0]; }},
    {"tanh", K::Pointwise, 1, R::PromoteFloat, "hd::tanh({0})",
     [](D a) { return std::tanh(a[0]); }},
    {"erf", K::Pointwise, 1, R::PromoteFloat, "hd::erf({0})", [](D a) { return std::erf(a[0]); }},
    {"sin", K::Pointwise, 1, R::PromoteFloat, "hd::sin({0})", [](D a) { return std::sin(a[0]); }},
    {"cos", K::Pointwise, 1, R::PromoteFloat, "hd::cos({0})", [](D a) { return std::cos(a[0]); }},
    {"sigmoid", K::Pointwise, 1, R::PromoteFloat, "(1 / (1 + hd::exp(-{0})))",
     [](D a) { return 1.0 / (1.0 + std::exp(-a[0])); }},
    {"silu", K::Pointwise, 1, R::PromoteFloat, "({0} / (1 + hd::exp(-{0})))",
     [](D a) { return a[0] / (1.0 + std::exp(-a[0])); }},
    {"relu", K::Pointwise, 1, R::Promote, "hd::relu({0})",
     [](D a) { return a[0] < 0 ? 0.0 : a[0]; }, [](I a) { return a[0] < 0 ? 0 : a[0]; }},
    {"isnan", K::Pointwise, 1, R::Bool, "({0} != {0})",
     [](D a) { return std::isnan(a[0]) ? 1.0 : 0.0; }, [](I) { return int64_t{0}; }},
    {"logical_not", K::Pointwise, 1, R::Bool, "({0} == 0)",
     [](D a) { return a[0] == 0 ? 1.0 : 0.0; }, [](I a) { return int64_t{a[0] == 0}; }},

    // Binary.
    {"add", K::Pointwise, 2, R::Promote, "({0} + {1})", [](D a) { return a[0] + a[1]; },
     [](I a) { return wrap(u(a[0]) + u(a[1])); }},
    {"sub", K::Pointwise, 2, R::Promote, "({0} - {1})", [](D a) { return a[0] - a[1]; },
     [](I a) { return wrap(u(a[0]) - u(a[1])); }},
    {"mul", K::Pointwise, 2, R::Promote, "({0} * {1})", [](D a) { return a[0] * a[1]; },
     [](I a) { return wrap(u(a[0]) * u(a[1])); }},
    {"div", K::Pointwise, 2, R::PromoteFloat, "({0} / {1})", [](D a) { return a[0] / a[1]; }},
    {"pow", K::Pointwise, 2, R::Promote, "hd::pow({0}, {1})",
     [](D a) { return std::pow(a[0], a[1]); }, intPow},
    {"maximum", K::Pointwise, 2, R::Promote, "hd::maximum({0}, {1})", maxNan,
     [](I a) { return std::max(a[0], a[1]); }},
    {"minimum", K::Pointwise, 2, R::Promote, "hd::minimum({0}, {1})", minNan,
     [](I a) { return std::min(a[0], a[1]); }},
    {"eq", K::Pointwise, 2, R::Bool, "({0} == {1})", [](D a) { return double(a[0] == a[1]); },
     [](I a) { return int64_t{a[0] == a[1]}; }},
    {"ne", K::Pointwise, 2, R::Bool, "({0} != {1})", [](D a) { return double(a[0] != a[1]); },
     [](I a) { return int64_t{a[0] != a[1]}; }},
    {"lt", K::Pointwise, 2, R::Bool, "({0} < {1})", [](D a) { return double(a[0] < a[1]); },
     [](I a) { return int64_t{a[0] < a[1]}; }},
    {"le", K::Pointwise, 2, R::Bool, "({0} <= {1})", [](D a) { return double(a[0] <= a[1]); },
     [](I a) { return int64_t{a[0] <= a[1]}; }},
    {"gt", K::Pointwise, 2, R::Bool, "({0} > {1})", [](D a) { return double(a[0] > a[1]); },
     [](I a) { return int64_t{a[0] > a[1]}; }},
    {"ge", K::Pointwise, 2, R::Bool, "({0} >= {1})", [](D a) { return double(a[0] >= a[1]); },
     [](I a) { return int64_t{a[0] >= a[1]}; }},
    {"logical_and", K::Pointwise, 2, R::Bool, "({0} != 0 && {1} != 0)",
     [](D a) { return double(a[0] != 0 && a[1] != 0); },
     [](I a) { return int64_t{a[0] != 0 && a[1] != 0}; }},
    {"logical_or", K::Pointwise, 2, R::Bool, "({0} != 0 || {1} != 0)",
     [](D a) { return double(a[0] != 0 || a[1] != 0); },
     [](I a) { return int64_t{a[0] != 0 || a[1] != 0}; }},

    // Ternary.
    {"where",
     K::Pointwise,
     3,
     R::Promote,
     "({0} ? {1} : {2})",
     [](D a) { return a[0] != 0 ? a[1] : a[2]; },
     [](I a) { return a[0] != 0 ? a[1] : a[2]; },
     {},
     std::nullopt,
     1},

    // Reductions: accumulator {0}, element {1}.
    {"sum", K::Reduction, 1, R::Promote, "({0} + {1})", [](D a) { return a[0] + a[1]; },
     [](I a) { return wrap(u(a[0]) + u(a[1])); }, kReduce, ReduceOp::Sum},
    {"prod", K::Reduction, 1, R::Promote, "({0} * {1})", [](D a) { return a[0] * a[1]; },
     [](I a) { return wrap(u(a[0]) * u(a[1])); }, kReduce, ReduceOp::Prod},
    {"max", K::Reduction, 1, R::Promote, "hd::maximum({0}, {1})", maxNan,
     [](I a) { return std::max(a[0], a[1]); }, kReduce, ReduceOp::Max},
    {"min", K::Reduction, 1, R::Promote, "hd::minimum({0}, {1})", minNan,
     [](I a) { return std::min(a[0], a[1]); }, kReduce, ReduceOp::Min},
};

int category(DType dtype) { return dtype == DType::Bool ? 0 : dtype == DType::I64 ? 1 : 2; }

}  // namespace

std::span<const OpDef> opTable() { return kTable; }

const OpDef* findOp(std::string_view name) {
  for (const OpDef& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const OpDef& op(std::string_view name) {
  if (const OpDef* found = findOp(name)) return *found;
  const OpDef* nearest =
      std::min_element(std::begin(kTable), std::end(kTable), [&](const OpDef& a, const OpDef& b) {
        return editDistance(a.name, name) < editDistance(b.name, name);
      });
  userError("there is no op '{}'; the nearest name is '{}'", name, nearest->name);
}

Scalar identityOf(ReduceOp op, DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      return roundTo(dtype, int64_t{0});
    case ReduceOp::Prod:
      return roundTo(dtype, int64_t{1});
    case ReduceOp::Min:
      return isFloat(dtype) ? Scalar(inf) : roundTo(dtype, std::numeric_limits<int64_t>::max());
    case ReduceOp::Max:
      if (dtype == DType::Bool) return false;
      return isFloat(dtype) ? Scalar(-inf) : Scalar(std::numeric_limits<int64_t>::min());
  }
  HEDDLE_CHECK(false, "reduction {} is not in the enum", static_cast<int>(op));
}

DType computeType(DType dtype) { return dtype == DType::BF16 ? DType::F32 : dtype; }

DType operandType(const OpDef& op, DType result, DType promoted) {
  return computeType(op.dtype_rule == DTypeRule::Bool ? promoted : result);
}

DType promoteOperands(std::span<const OperandType> operands) {
  std::optional<DType> tensors;
  std::optional<DType> scalars;
  for (const OperandType& operand : operands) {
    std::optional<DType>& side = operand.is_scalar ? scalars : tensors;
    side = side ? promote(*side, operand.dtype) : operand.dtype;
  }
  HEDDLE_CHECK(tensors || scalars, "an op without operands has no promoted type");
  if (!tensors) return *scalars;
  if (!scalars || category(*scalars) <= category(*tensors)) return *tensors;
  return isFloat(*scalars) ? DType::F32 : *scalars;
}

}  // namespace heddle
