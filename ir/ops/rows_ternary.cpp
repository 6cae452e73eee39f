// Pointwise ops with three or more operands, except the ops with parameters in rows_unary.cpp.
#include "ir/ops/rows.h"
#include "ir/ops/scalar_functions.h"

namespace heddle::op_rows {
namespace {

const Scalar kOne[] = {int64_t{1}};

double clampFloat(const double* a) {
  const double above[] = {maxNan(a), a[2]};
  return minNan(above);
}

// Uses PyTorch's formula. For the weights 0 and 1, it is exact if a[1] - a[0] is finite.
double lerp(const double* a) {
  const double way = a[1] - a[0];
  return std::fabs(a[2]) < 0.5 ? a[0] + a[2] * way : a[1] - way * (1 - a[2]);
}

}  // namespace

std::span<const OpDef> ternaryOps() {
  static const std::vector<OpDef> rows = {
      Row(
          "where", 3, R::Promote, "({0} ? {1} : {2})", [](D a) { return a[0] != 0 ? a[1] : a[2]; },
          [](I a) { return a[0] != 0 ? a[1] : a[2]; })
          .conditions(1)
          .selecting()
          .keepsRelativeError(),
      Row("clamp", 3, R::Promote, "hd::minimum(hd::maximum({0}, {1}), {2})", clampFloat,
          [](I a) { return std::min(std::max(a[0], a[1]), a[2]); })
          .says("Operands: x, min, max. Both bounds are required. For a lower bound only, use "
                "`maximum`; for an upper bound only, use `minimum`"),
      Row("lerp", 3, R::Promote, "hd::lerp({0}, {1}, {2})", lerp)
          .says(
              "Operands: start, end, weight. Some may be integers or bools if the common type is a "
              "float, as with a weight of 0.5. Float types may differ; PyTorch raises an error"),
      Row(
          "addcmul", 4, R::Promote, "({0} + {3} * {1} * {2})",
          [](D a) { return a[0] + a[3] * a[1] * a[2]; },
          [](I a) { return wrap(u(a[0]) + u(a[3]) * u(a[1]) * u(a[2])); })
          .noBools()
          .optional(kOne)
          .says("Operands: x, a, b, value = 1. Computes x + value * a * b; half types are rounded "
                "once"),
      Row("philox32", 3, R::Wide, "hd::philox32({3}, {0}, {1}, {2})", nullptr,
          [](I a) { return op_functions::philox32(a[0], a[1], a[2]); })
          .noBools()
          .keeps("hd::PhiloxBlock")
          .says(
              "Operands: seed, offset, index. The result is one word of a Philox4x32-10 block, a "
              "number below 2^32: the word at position index mod 4. The key of the block is seed, "
              "and its counter is (index div 4, offset)"),
      Row("philox64", 3, R::Wide, "hd::philox64({3}, {0}, {1}, {2})", nullptr,
          [](I a) { return op_functions::philox64(a[0], a[1], a[2]); })
          .noBools()
          .keeps("hd::PhiloxBlock")
          .says(
              "Operands: seed, offset, index. The result is two words of a Philox4x32-10 block: "
              "words 0 and 1 if index is even, words 2 and 3 if it is odd. The first word is the "
              "lower half. The key of the block is seed, and its counter is (index div 2, offset)"),
  };
  return rows;
}

}  // namespace heddle::op_rows
