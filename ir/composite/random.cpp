// Random tensors, dropout, and the gradient of dropout if the run gives the probability. The random
// bits of an element depend only on the seed, the offset and the index of the element in the
// unsharded tensor.
#include <cmath>
#include <limits>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/terms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

constexpr int64_t kWord = int64_t{1} << 32;

Term integer(FusionBuilder& b, int64_t value) { return composite::constant(b, value); }

Term shiftedRight(Term bits, int64_t distance) {
  return composite::call("bitwise_right_shift", {bits, integer(*bits.b, distance)});
}

// Returns the lowest `count` bits of `bits`.
Term lowBits(Term bits, int count) {
  return composite::call("bitwise_and", {bits, integer(*bits.b, (int64_t{1} << count) - 1)});
}

// Return the lower and the upper half of a result of draw64().
Term lowerHalf(Term bits) { return lowBits(bits, 32); }
Term upperHalf(Term bits) { return lowBits(shiftedRight(bits, 32), 32); }

// Returns the row-major index of each element in the unsharded tensor.
Term linearIndex(FusionBuilder& b, const std::vector<Size>& sizes) {
  if (sizes.empty()) return {&b, b.full(integer(b, 0).id, {}, DType::I64)};
  Term index = composite::positions(b, sizes, 0);
  for (size_t axis = 1; axis < sizes.size(); ++axis) {
    const Term position = composite::positions(b, sizes, static_cast<int64_t>(axis));
    index = index * composite::count(position, {static_cast<int64_t>(axis)}) + position;
  }
  return index;
}

// Draws an integer per element. `generator` is philox32 (a number below 2^32) or philox64 (all bits
// of an i64).
Term draw(const char* generator, FusionBuilder& b, const char* op_name,
          const std::vector<Size>& sizes, Philox philox) {
  b.checkSizes(op_name, sizes);
  auto check = [&](const char* what, ValueId id) {
    const Value& value = b.fusion().value(id);
    HEDDLE_USER_CHECK(value.is_scalar && value.tensor.dtype == DType::I64,
                      "{}: the {} {} must be an i64 scalar", b.where(op_name), what, b.typeOf(id));
  };
  check("seed", philox.seed);
  check("offset", philox.offset);
  const Term index = linearIndex(b, sizes);
  return composite::call(generator, {{&b, philox.seed}, {&b, philox.offset}, index});
}

Term draw32(FusionBuilder& b, const char* op_name, const std::vector<Size>& sizes, Philox philox) {
  return draw("philox32", b, op_name, sizes, philox);
}

Term draw64(FusionBuilder& b, const char* op_name, const std::vector<Size>& sizes, Philox philox) {
  return draw("philox64", b, op_name, sizes, philox);
}

// Returns u in [0, 1). u has one random bit for each bit of the mantissa of `dtype`, including the
// implicit bit. The result has the type `wide`, which represents u exactly. `bits` is a result of
// draw64() for F64, otherwise of draw32().
Term unitOf(Term bits, DType dtype, DType wide) {
  const int digits = dtype == DType::F64    ? 53
                     : dtype == DType::F32  ? 24
                     : dtype == DType::BF16 ? 8
                                            : 11;
  const Term top = dtype == DType::F64 ? lowBits(shiftedRight(bits, 64 - digits), digits)
                                       : shiftedRight(bits, 32 - digits);
  return composite::cast(top, wide) * std::ldexp(1.0, -digits);
}

// Returns the greatest number of `dtype` below `value`. `dtype` must represent `value` exactly.
double numberBelow(DType dtype, double value) {
  if (dtype == DType::F64) return std::nextafter(value, -std::numeric_limits<double>::infinity());
  uint32_t bits = 0;
  storeElement(&bits, dtype, 0, value);
  const uint32_t sign = 1u << (8 * sizeOf(dtype) - 1);
  bits = value > 0 ? bits - 1 : value == 0 ? sign | 1u : bits + 1;
  return toDouble(loadElement(&bits, dtype, 0));
}

// Returns low + u * (high - low). The function uses a second formula if high - low is infinite.
Term between(Term u, double low, double high) {
  if (std::isfinite(high - low)) return u * (high - low) + low;
  return u * high + (1.0 - u) * low;
}

void checkProbability(FusionBuilder& b, const char* op_name, double p) {
  HEDDLE_USER_CHECK(p >= 0 && p <= 1, "{}: p is {}, expected 0 to 1", b.where(op_name), p);
}

void checkRandomType(FusionBuilder& b, const char* op_name, DType dtype) {
  HEDDLE_USER_CHECK(isFloat(dtype) && sizeOf(dtype) > 1, "{}: {} is not f64, f32, f16 or bf16",
                    b.where(op_name), name(dtype));
}

// Returns whether `drawn`, a result of draw32(), times 2^-32 is below p. The function compares
// integers, so the comparison is exact.
Term below(Term drawn, double p) {
  const auto threshold = static_cast<int64_t>(std::ceil(std::ldexp(p, 32)));
  return composite::call("lt", {drawn, integer(*drawn.b, threshold)});
}

// Returns 1 - p, where p is a probability that a run gives. p is first limited to the range 0 to 1,
// and NaN counts as 0.
Term keptPart(FusionBuilder& b, const char* op_name, ValueId p) {
  const Value& value = b.fusion().value(p);
  HEDDLE_USER_CHECK(value.tensor.rank() == 0 && isFloat(value.tensor.dtype),
                    "{}: p is {}, expected a scalar of a float type", b.where(op_name),
                    b.typeOf(p));
  const Term chance = composite::cast({&b, p}, DType::F64);
  const Term zero = composite::constant(b, 0.0);
  const Term positive = composite::where(composite::call("gt", {chance, zero}), chance, zero);
  return 1.0 - composite::call("minimum", {positive, composite::constant(b, 1.0)});
}

// Returns 1 / kept, or 0 if kept is 0.
Term inverseOf(Term kept) {
  FusionBuilder& b = *kept.b;
  const Term zero = composite::constant(b, 0.0);
  return composite::where(composite::call("gt", {kept, zero}), composite::constant(b, 1.0) / kept,
                          zero);
}

// Returns bits mod range. `bits` counts as an unsigned number of 64 bits.
Term unsignedRemainder(Term bits, int64_t range) {
  FusionBuilder& b = *bits.b;
  const Term rest = composite::call("remainder", {bits, integer(b, range)});
  // An unsigned number of 2^63 or more is 2^64 too low if it is read as a signed number. Correct
  // this by adding 2^64 mod range.
  const auto wrapped = static_cast<int64_t>((UINT64_MAX % static_cast<uint64_t>(range) + 1) %
                                            static_cast<uint64_t>(range));
  const Term overflows = composite::call("ge", {rest, integer(b, range - wrapped)});
  const Term shift = composite::where(overflows, integer(b, wrapped - range), integer(b, wrapped));
  const Term negative = composite::call("lt", {bits, integer(b, 0)});
  return rest + composite::where(negative, shift, integer(b, 0));
}

}  // namespace

ValueId randomBits(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox) {
  Result result(b);
  return result(draw64(b, "random_bits", sizes, philox));
}

ValueId uniform(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double low,
                double high, DType dtype) {
  Result result(b);
  checkRandomType(b, "uniform", dtype);
  const double first = toDouble(roundTo(dtype, low));
  const double end = toDouble(roundTo(dtype, high));
  HEDDLE_USER_CHECK(std::isfinite(first) && std::isfinite(end),
                    "{}: low={} and high={} are not both finite in {}", b.where("uniform"), low,
                    high, name(dtype));
  HEDDLE_USER_CHECK(low <= high, "{}: low={} is above high={}", b.where("uniform"), low, high);
  const Term bits = dtype == DType::F64 ? draw64(b, "uniform", sizes, philox)
                                        : draw32(b, "uniform", sizes, philox);
  if (first == 0 && end == 1) {
    return result(unitOf(bits, dtype, composite::wideType(dtype)), dtype);
  }
  Term value = between(unitOf(bits, dtype, DType::F64), first, end);
  // Limit the value, because rounding may give `end` itself.
  if (first < end) {
    value = composite::call("minimum", {value, composite::constant(b, numberBelow(dtype, end))});
  }
  return result(value, dtype);
}

ValueId normal(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double mean,
               double stddev, DType dtype) {
  Result result(b);
  checkRandomType(b, "normal", dtype);
  HEDDLE_USER_CHECK(stddev >= 0, "{}: std is {}, expected 0 or more", b.where("normal"), stddev);
  const Term bits = draw64(b, "normal", sizes, philox);
  const double unit = std::ldexp(1.0, -32);
  const Term u1 = (composite::cast(lowerHalf(bits), DType::F64) + 1.0) * unit;
  const Term u2 = composite::cast(upperHalf(bits), DType::F64) * unit;
  const Term radius = composite::call("sqrt", composite::log(u1) * -2.0);
  const Term z = radius * composite::call("cos", u2 * (2 * M_PI));
  return result(z * stddev + mean, dtype);
}

ValueId bernoulli(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, double p) {
  Result result(b);
  checkProbability(b, "bernoulli", p);
  return result(below(draw32(b, "bernoulli", sizes, philox), p));
}

ValueId bernoulli(FusionBuilder& b, ValueId p, Philox philox) {
  Result result(b);
  const Term chance = composite::floatOperand(b, "bernoulli", p);
  const std::vector<Size> sizes = chance.tensor().sizes();
  const Term unit = unitOf(draw32(b, "bernoulli", sizes, philox), DType::F32, DType::F32);
  const Term hit = composite::call("lt", {unit, composite::cast(chance, DType::F32)});
  return result(hit, chance.dtype());
}

ValueId randint(FusionBuilder& b, const std::vector<Size>& sizes, Philox philox, int64_t low,
                int64_t high) {
  Result result(b);
  int64_t range = 0;
  HEDDLE_USER_CHECK(low < high, "{}: low={} must be below high={}", b.where("randint"), low, high);
  HEDDLE_USER_CHECK(!__builtin_sub_overflow(high, low, &range),
                    "{}: from low={} to high={} there are more than 2^63 - 1 numbers",
                    b.where("randint"), low, high);
  const Term drawn =
      range <= kWord
          ? composite::call("remainder", {draw32(b, "randint", sizes, philox), integer(b, range)})
          : unsignedRemainder(draw64(b, "randint", sizes, philox), range);
  return result(drawn + integer(b, low));
}

Dropout dropout(FusionBuilder& b, ValueId x, Philox philox, ValueId p) {
  Result result(b);
  const Term value = composite::floatOperand(b, "dropout", x);
  const Term kept = keptPart(b, "dropout", p);
  const Term threshold =
      composite::cast(composite::call("ceil", kept * std::ldexp(1.0, 32)), DType::I64);
  const Term drawn = draw32(b, "dropout", value.tensor().sizes(), philox);
  const Term mask = composite::call("lt", {drawn, threshold});
  return {result(composite::widen(value) * mask * inverseOf(kept), value.dtype()), mask.id};
}

ValueId dropoutBackward(FusionBuilder& b, ValueId dy, ValueId mask, ValueId p) {
  Result result(b);
  const Term grad = composite::floatOperand(b, "dropout_backward", dy);
  const Term kept{&b, mask};
  HEDDLE_USER_CHECK(b.tensorOf("dropout_backward", mask).dtype == DType::Bool,
                    "{}: the mask {} must be bool", b.where("dropout_backward"), b.typeOf(mask));
  composite::sameShape(b, "dropout_backward", grad, kept);
  const Term scale = inverseOf(keptPart(b, "dropout_backward", p));
  return result(composite::widen(grad) * kept * scale, grad.dtype());
}

Dropout dropout(FusionBuilder& b, ValueId x, Philox philox, double p) {
  Result result(b);
  const Term value = composite::floatOperand(b, "dropout", x);
  checkProbability(b, "dropout", p);
  const std::vector<Size> sizes = value.tensor().sizes();
  const Term mask = below(draw32(b, "dropout", sizes, philox), 1 - p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return {result(composite::widen(value) * mask * scale, value.dtype()), mask.id};
}

}  // namespace heddle
