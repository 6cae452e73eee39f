// Pointwise ops of two operands.
#include "ir/ops/rows.h"
#include "ir/ops/scalar_functions.h"

namespace heddle::op_rows {
namespace {

namespace fn = op_functions;

int64_t greater(const int64_t* a) { return std::max(a[0], a[1]); }
int64_t lesser(const int64_t* a) { return std::min(a[0], a[1]); }

std::vector<OpDef> arithmeticOps() {
  return {
      Row(
          "add", 2, R::Promote, "({0} + {1})", [](D a) { return a[0] + a[1]; },
          [](I a) { return wrap(u(a[0]) + u(a[1])); }),
      Row(
          "sub", 2, R::Promote, "({0} - {1})", [](D a) { return a[0] - a[1]; },
          [](I a) { return wrap(u(a[0]) - u(a[1])); })
          .noBools()
          .says("A bool beside a number is 0 or 1, where PyTorch raises"),
      Row(
          "mul", 2, R::Promote, "({0} * {1})", [](D a) { return a[0] * a[1]; },
          [](I a) { return wrap(u(a[0]) * u(a[1])); }),
      Row("div", 2, R::PromoteFloat, "({0} / {1})", [](D a) { return a[0] / a[1]; }),
      Row(
          "div_floor", 2, R::Promote, "hd::div_floor({0}, {1})",
          [](D a) { return fn::divFloor(a[0], a[1]); },
          [](I a) { return fn::divFloor(a[0], a[1]); })
          .noBools()
          .says("div(rounding_mode='floor'); an integer by 0 is 0, where PyTorch raises"),
      Row(
          "div_trunc", 2, R::Promote, "hd::div_trunc({0}, {1})",
          [](D a) { return std::trunc(a[0] / a[1]); }, [](I a) { return fn::divTrunc(a[0], a[1]); })
          .noBools()
          .singles([](const float* a) { return std::trunc(a[0] / a[1]); })
          .says("div(rounding_mode='trunc'); an integer by 0 is 0, where PyTorch raises; of a half "
                "type "
                "the quotient is truncated in f32, where PyTorch rounds it first"),
      Row(
          "fmod", 2, R::Promote, "hd::fmod({0}, {1})", [](D a) { return std::fmod(a[0], a[1]); },
          [](I a) { return fn::fmod(a[0], a[1]); })
          .noBools()
          .says("Sign of the first operand; an integer by 0 is 0, where PyTorch raises"),
      Row(
          "remainder", 2, R::Promote, "hd::remainder({0}, {1})",
          [](D a) { return fn::remainder(a[0], a[1]); },
          [](I a) { return fn::remainder(a[0], a[1]); })
          .noBools()
          .says("Sign of the second operand; an integer by 0 is 0, where PyTorch raises"),
      Row(
          "pow", 2, R::Promote, "hd::pow({0}, {1})", [](D a) { return std::pow(a[0], a[1]); },
          [](I a) { return fn::pow(a[0], a[1]); })
          .noBools()
          .says("By a scalar 0.5 it is sqrt, by -0.5 rsqrt (PyTorch's pow of f16 on the CPU is "
                "not); integers wrap; a negative integer exponent rounds the result toward zero, "
                "where PyTorch raises for a scalar exponent"),
      Row("atan2", 2, R::PromoteFloat, "hd::atan2({0}, {1})",
          [](D a) { return std::atan2(a[0], a[1]); }),
      Row("maximum", 2, R::Promote, "hd::maximum({0}, {1})", maxNan, greater)
          .says("NaN if an operand is"),
      Row("minimum", 2, R::Promote, "hd::minimum({0}, {1})", minNan, lesser)
          .says("NaN if an operand is"),
      Row(
          "fmax", 2, R::Promote, "hd::fmax({0}, {1})",
          [](D a) { return a[0] >= a[1] || std::isnan(a[1]) ? a[0] : a[1]; }, greater)
          .says("NaN if both operands are"),
      Row(
          "fmin", 2, R::Promote, "hd::fmin({0}, {1})",
          [](D a) { return a[0] <= a[1] || std::isnan(a[1]) ? a[0] : a[1]; }, lesser)
          .says("NaN if both operands are"),
  };
}

std::vector<OpDef> comparisonOps() {
  return {
      Row(
          "eq", 2, R::Bool, "({0} == {1})", [](D a) { return double(a[0] == a[1]); },
          [](I a) { return int64_t{a[0] == a[1]}; }),
      Row(
          "ne", 2, R::Bool, "({0} != {1})", [](D a) { return double(a[0] != a[1]); },
          [](I a) { return int64_t{a[0] != a[1]}; }),
      Row(
          "lt", 2, R::Bool, "({0} < {1})", [](D a) { return double(a[0] < a[1]); },
          [](I a) { return int64_t{a[0] < a[1]}; }),
      Row(
          "le", 2, R::Bool, "({0} <= {1})", [](D a) { return double(a[0] <= a[1]); },
          [](I a) { return int64_t{a[0] <= a[1]}; }),
      Row(
          "gt", 2, R::Bool, "({0} > {1})", [](D a) { return double(a[0] > a[1]); },
          [](I a) { return int64_t{a[0] > a[1]}; }),
      Row(
          "ge", 2, R::Bool, "({0} >= {1})", [](D a) { return double(a[0] >= a[1]); },
          [](I a) { return int64_t{a[0] >= a[1]}; }),
      Row(
          "logical_and", 2, R::Bool, "({0} != 0 && {1} != 0)",
          [](D a) { return double(a[0] != 0 && a[1] != 0); },
          [](I a) { return int64_t{a[0] != 0 && a[1] != 0}; }),
      Row(
          "logical_or", 2, R::Bool, "({0} != 0 || {1} != 0)",
          [](D a) { return double(a[0] != 0 || a[1] != 0); },
          [](I a) { return int64_t{a[0] != 0 || a[1] != 0}; }),
      Row(
          "logical_xor", 2, R::Bool, "(({0} != 0) != ({1} != 0))",
          [](D a) { return double((a[0] != 0) != (a[1] != 0)); },
          [](I a) { return int64_t{(a[0] != 0) != (a[1] != 0)}; }),
  };
}

std::vector<OpDef> bitOps() {
  return {
      Row("bitwise_and", 2, R::Promote, "({0} & {1})", nullptr, [](I a) { return a[0] & a[1]; }),
      Row("bitwise_or", 2, R::Promote, "({0} | {1})", nullptr, [](I a) { return a[0] | a[1]; }),
      Row("bitwise_xor", 2, R::Promote, "({0} ^ {1})", nullptr, [](I a) { return a[0] ^ a[1]; }),
      Row("bitwise_left_shift", 2, R::Promote, "hd::shift_left({0}, {1})", nullptr,
          [](I a) { return fn::shiftLeft(a[0], a[1]); })
          .noBools()
          .says("0 when shifted by less than 0, or by the width or more"),
      Row("bitwise_right_shift", 2, R::Promote, "hd::shift_right({0}, {1})", nullptr,
          [](I a) { return fn::shiftRight(a[0], a[1]); })
          .noBools()
          .says("Copies the sign; only signs are left when shifted by less than 0, or by the width "
                "or more"),
  };
}

}  // namespace

std::span<const OpDef> binaryOps() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = arithmeticOps();
    for (const std::vector<OpDef>& family : {comparisonOps(), bitOps()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return rows;
}

}  // namespace heddle::op_rows
