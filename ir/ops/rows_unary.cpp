// Pointwise ops with one main operand. Some of these ops have further operands, which are
// parameters, such as the slope of leaky_relu.
#include "ir/ops/rows.h"
#include "ir/ops/scalar_functions.h"

namespace heddle::op_rows {
namespace {

namespace fn = op_functions;

constexpr AttrSpec kDType[] = {{"dtype", AttrType::DType}};
const Scalar kSlope[] = {0.01};
const Scalar kBetaThreshold[] = {1.0, 20.0};

int64_t same(const int64_t* a) { return a[0]; }

// Returns the rows of ops whose results are exact before they are rounded to the dtype, such as
// cast, neg, relu, floor, isnan and bitwise_not.
std::vector<OpDef> exactOps() {
  return {
      Row(
          "cast", 1, R::Attribute, "{0}", [](D a) { return a[0]; }, same)
          .with(kDType)
          .keepsRelativeError()
          .says("From float to integer it truncates toward zero and saturates; NaN becomes 0"),
      Row(
          "neg", 1, R::Promote, "(-{0})", [](D a) { return -a[0]; },
          [](I a) { return wrap(0 - u(a[0])); })
          .noBools()
          .keepsRelativeError(),
      Row(
          "abs", 1, R::Promote, "hd::abs({0})", [](D a) { return std::fabs(a[0]); },
          [](I a) { return a[0] < 0 ? wrap(0 - u(a[0])) : a[0]; })
          .noBools()
          .keepsRelativeError()
          .neverNegative(),
      Row(
          "sign", 1, R::Promote, "hd::sign({0})", [](D a) { return fn::sign(a[0]); },
          [](I a) { return int64_t{a[0] > 0} - int64_t{a[0] < 0}; })
          .says("0 for NaN"),
      Row(
          "relu", 1, R::Promote, "hd::relu({0})", [](D a) { return a[0] < 0 ? 0.0 : a[0]; },
          [](I a) { return a[0] < 0 ? 0 : a[0]; })
          .noBools(),
      Row(
          "floor", 1, R::Promote, "hd::floor({0})", [](D a) { return std::floor(a[0]); }, same)
          .noBools(),
      Row(
          "ceil", 1, R::Promote, "hd::ceil({0})", [](D a) { return std::ceil(a[0]); }, same)
          .noBools(),
      Row(
          "round", 1, R::Promote, "hd::round({0})", [](D a) { return fn::roundHalfEven(a[0]); },
          same)
          .noBools()
          .says("To nearest, ties to even"),
      Row(
          "trunc", 1, R::Promote, "hd::trunc({0})", [](D a) { return std::trunc(a[0]); }, same)
          .noBools(),
      Row("frac", 1, R::Promote, "({0} - hd::trunc({0}))",
          [](D a) { return a[0] - std::trunc(a[0]); }),
      Row(
          "isnan", 1, R::Bool, "({0} != {0})", [](D a) { return double(std::isnan(a[0])); },
          [](I) { return int64_t{0}; }),
      Row(
          "isinf", 1, R::Bool, "hd::isinf({0})", [](D a) { return double(std::isinf(a[0])); },
          [](I) { return int64_t{0}; }),
      Row(
          "isfinite", 1, R::Bool, "hd::isfinite({0})",
          [](D a) { return double(std::isfinite(a[0])); }, [](I) { return int64_t{1}; }),
      Row(
          "signbit", 1, R::Bool, "hd::signbit({0})", [](D a) { return double(std::signbit(a[0])); },
          [](I a) { return int64_t{a[0] < 0}; }),
      Row(
          "logical_not", 1, R::Bool, "({0} == 0)", [](D a) { return double(a[0] == 0); },
          [](I a) { return int64_t{a[0] == 0}; }),
      Row("bitwise_not", 1, R::Promote, "hd::bitwise_not({0})", nullptr, [](I a) { return ~a[0]; })
          .bools([](I a) { return int64_t{a[0] == 0}; }),
  };
}

std::vector<OpDef> realOps() {
  return {
      Row::real("exp", "hd::exp({0})", [](D a) { return std::exp(a[0]); })
          .neverNegative()
          .whenRounded("hd::nearExp({0})"),
      Row::real("exp2", "hd::exp2({0})", [](D a) { return std::exp2(a[0]); }),
      Row::real("expm1", "hd::expm1({0})", [](D a) { return std::expm1(a[0]); }),
      Row::real("log", "hd::log({0})", [](D a) { return std::log(a[0]); }),
      Row::real("log2", "hd::log2({0})", [](D a) { return std::log2(a[0]); }),
      Row::real("log10", "hd::log10({0})", [](D a) { return std::log10(a[0]); }),
      Row::real("log1p", "hd::log1p({0})", [](D a) { return std::log1p(a[0]); }),
      Row::real("sqrt", "hd::sqrt({0})", [](D a) { return std::sqrt(a[0]); }),
      Row::real("rsqrt", "hd::rsqrt({0})", [](D a) { return 1.0 / std::sqrt(a[0]); }),
      Row::real("reciprocal", "(1 / {0})", [](D a) { return 1.0 / a[0]; }),
      Row::real("sin", "hd::sin({0})", [](D a) { return std::sin(a[0]); })
          .whenRounded("hd::nearSin({0})"),
      Row::real("cos", "hd::cos({0})", [](D a) { return std::cos(a[0]); })
          .whenRounded("hd::nearCos({0})"),
      Row::real("tan", "hd::tan({0})", [](D a) { return std::tan(a[0]); }),
      Row::real("asin", "hd::asin({0})", [](D a) { return std::asin(a[0]); }),
      Row::real("acos", "hd::acos({0})", [](D a) { return std::acos(a[0]); }),
      Row::real("atan", "hd::atan({0})", [](D a) { return std::atan(a[0]); }),
      Row::real("sinh", "hd::sinh({0})", [](D a) { return std::sinh(a[0]); }),
      Row::real("cosh", "hd::cosh({0})", [](D a) { return std::cosh(a[0]); }),
      Row::real("tanh", "hd::tanh({0})", [](D a) { return std::tanh(a[0]); }),
      Row::real("asinh", "hd::asinh({0})", [](D a) { return std::asinh(a[0]); }),
      Row::real("acosh", "hd::acosh({0})", [](D a) { return std::acosh(a[0]); }),
      Row::real("atanh", "hd::atanh({0})", [](D a) { return std::atanh(a[0]); }),
      Row::real("erf", "hd::erf({0})", [](D a) { return std::erf(a[0]); }),
      Row::real("erfc", "hd::erfc({0})", [](D a) { return std::erfc(a[0]); }),
      Row::real("erfinv", "hd::erfinv({0})", [](D a) { return fn::erfinv(a[0]); }),
      Row::real("lgamma", "hd::lgamma({0})", [](D a) { return fn::lgamma(a[0]); }),
      Row::real("sigmoid", "hd::overOnePlus(1, hd::exp(-{0}))",
                [](D a) { return 1.0 / (1.0 + std::exp(-a[0])); })
          .neverNegative()
          .whenRounded("hd::overOnePlus(1, hd::nearExp(-{0}))"),
      Row::real("silu", "hd::overOnePlus({0}, hd::exp(-{0}))",
                [](D a) { return a[0] / (1.0 + std::exp(-a[0])); })
          .whenRounded("hd::overOnePlus({0}, hd::nearExp(-{0}))"),
      Row("leaky_relu", 2, R::PromoteFloat, "({0} > 0 ? {0} : {0} * {1})",
          [](D a) { return a[0] > 0 ? a[0] : a[0] * a[1]; })
          .optional(kSlope)
          .says("Operands: x, negative_slope = 0.01"),
      Row(
          "threshold", 3, R::Promote, "({0} <= {1} ? {2} : {0})",
          [](D a) { return a[0] <= a[1] ? a[2] : a[0]; },
          [](I a) { return a[0] <= a[1] ? a[2] : a[0]; })
          .noBools()
          .says("Operands: x, threshold, value. Gives `value` if x <= threshold, "
                "and otherwise x, so NaN stays NaN"),
      Row("softplus", 3, R::PromoteFloat, "hd::softplus({0}, {1}, {2})",
          [](D a) {
            const double scaled = a[0] * a[1];
            return scaled > a[2] ? a[0] : std::log1p(std::exp(scaled)) / a[1];
          })
          .optional(kBetaThreshold)
          .whenRounded("hd::nearSoftplus({0}, {1}, {2})")
          .says(
              "Operands: x, beta = 1, threshold = 20. Gives x if x * beta is above the threshold"),
  };
}

}  // namespace

std::span<const OpDef> unaryOps() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = exactOps();
    const std::vector<OpDef> real = realOps();
    all.insert(all.end(), real.begin(), real.end());
    return all;
  }();
  return rows;
}

}  // namespace heddle::op_rows
