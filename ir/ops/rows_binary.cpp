// Pointwise ops with two operands.
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
          .says("A bool with a number counts as 0 or 1; PyTorch raises an error"),
      Row(
          "mul", 2, R::Promote, "({0} * {1})", [](D a) { return a[0] * a[1]; },
          [](I a) { return wrap(u(a[0]) * u(a[1])); })
          .keepsRelativeError(),
      Row("div", 2, R::PromoteFloat, "({0} / {1})", [](D a) { return a[0] / a[1]; })
          .keepsRelativeError()
          .whenRounded("hd::nearDivision({0}, {1})"),
      Row(
          "div_floor", 2, R::Promote, "hd::div_floor({0}, {1})",
          [](D a) { return fn::divFloor(a[0], a[1]); },
          [](I a) { return fn::divFloor(a[0], a[1]); })
          .noBools()
          .says("PyTorch's div(rounding_mode='floor'). An integer divided by 0 gives 0; PyTorch "
                "raises an error"),
      Row(
          "div_trunc", 2, R::Promote, "hd::div_trunc({0}, {1})",
          [](D a) { return std::trunc(a[0] / a[1]); }, [](I a) { return fn::divTrunc(a[0], a[1]); })
          .noBools()
          .singles([](const float* a) { return std::trunc(a[0] / a[1]); })
          .says("PyTorch's div(rounding_mode='trunc'). An integer divided by 0 gives 0; PyTorch "
                "raises an error. For half types heddle truncates the f32 quotient; PyTorch rounds "
                "it to the half type first"),
      Row(
          "fmod", 2, R::Promote, "hd::fmod({0}, {1})", [](D a) { return std::fmod(a[0], a[1]); },
          [](I a) { return fn::fmod(a[0], a[1]); })
          .noBools()
          .says("Has the sign of the first operand. An integer divided by 0 gives 0; PyTorch "
                "raises an error"),
      Row(
          "remainder", 2, R::Promote, "hd::remainder({0}, {1})",
          [](D a) { return fn::remainder(a[0], a[1]); },
          [](I a) { return fn::remainder(a[0], a[1]); })
          .noBools()
          .says("Has the sign of the second operand. An integer divided by 0 gives 0; PyTorch "
                "raises an error"),
      Row(
          "pow", 2, R::Promote, "hd::pow({0}, {1})", [](D a) { return std::pow(a[0], a[1]); },
          [](I a) { return fn::pow(a[0], a[1]); })
          .noBools()
          .says("With the scalar exponent 0.5 it computes sqrt, and with -0.5 rsqrt. PyTorch "
                "does the same, except for f16 on the CPU. Integers wrap. With a negative "
                "integer exponent, the result is rounded toward zero; PyTorch raises an error "
                "if that exponent is a scalar"),
      Row("atan2", 2, R::PromoteFloat, "hd::atan2({0}, {1})",
          [](D a) { return std::atan2(a[0], a[1]); }),
      Row("maximum", 2, R::Promote, "hd::maximum({0}, {1})", maxNan, greater)
          .says("NaN if an operand is NaN"),
      Row("minimum", 2, R::Promote, "hd::minimum({0}, {1})", minNan, lesser)
          .says("NaN if an operand is NaN"),
      Row(
          "fmax", 2, R::Promote, "hd::fmax({0}, {1})",
          [](D a) { return a[0] >= a[1] || std::isnan(a[1]) ? a[0] : a[1]; }, greater)
          .says("NaN if both operands are NaN"),
      Row(
          "fmin", 2, R::Promote, "hd::fmin({0}, {1})",
          [](D a) { return a[0] <= a[1] || std::isnan(a[1]) ? a[0] : a[1]; }, lesser)
          .says("NaN if both operands are NaN"),
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
          .says("Shifts by a negative number, or by the width or more, give 0"),
      Row("bitwise_right_shift", 2, R::Promote, "hd::shift_right({0}, {1})", nullptr,
          [](I a) { return fn::shiftRight(a[0], a[1]); })
          .noBools()
          .says("Copies the sign. Shifts by a negative number, or by the width or more, leave only "
                "the sign"),
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
