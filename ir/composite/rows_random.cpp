#include "ir/base/check.h"
#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kBits[] = {{"sizes", AttrType::Sizes, false}};
constexpr AttrSpec kUniform[] = {{"sizes", AttrType::Sizes, false},
                                 {"low", AttrType::Float, false},
                                 {"high", AttrType::Float, false},
                                 {"dtype", AttrType::DType, false}};
constexpr AttrSpec kNormal[] = {{"sizes", AttrType::Sizes, false},
                                {"mean", AttrType::Float, false},
                                {"std", AttrType::Float, false},
                                {"dtype", AttrType::DType, false}};
constexpr AttrSpec kBernoulli[] = {{"sizes", AttrType::Sizes, false},
                                   {"p", AttrType::Float, false}};
constexpr AttrSpec kRandint[] = {
    {"sizes", AttrType::Sizes, false}, {"low", AttrType::Int, false}, {"high", AttrType::Int}};
constexpr AttrSpec kDropout[] = {{"p", AttrType::Float, false}};

// The operands of a random op: (seed, offset) with the attribute `sizes`, or (like, seed, offset)
// with the sizes of the tensor `like`.
struct Where {
  std::vector<Size> sizes;
  Philox philox;
};

Where place(B b, std::string_view op_name, V v, A a) {
  const auto sizes = maybe<std::vector<Size>>(a, "sizes");
  if (v.size() == 2) {
    HEDDLE_USER_CHECK(sizes.has_value(), "{}: write sizes=[...] or a tensor of these sizes first",
                      b.where(op_name));
    return {*sizes, {v[0], v[1]}};
  }
  HEDDLE_USER_CHECK(!sizes.has_value(), "{}: both sizes=[...] and {} give the sizes; omit one",
                    b.where(op_name), b.typeOf(v[0]));
  return {b.tensorOf(op_name, v[0]).sizes(), {v[1], v[2]}};
}

Operands uniformRow(B b, V v, A a) {
  const Where at = place(b, "uniform", v, a);
  return {uniform(b, at.sizes, at.philox, get(a, "low", 0.0), get(a, "high", 1.0),
                  get(a, "dtype", DType::F32))};
}

Operands normalRow(B b, V v, A a) {
  const Where at = place(b, "normal", v, a);
  return {normal(b, at.sizes, at.philox, get(a, "mean", 0.0), get(a, "std", 1.0),
                 get(a, "dtype", DType::F32))};
}

Operands bernoulliRow(B b, V v, A a) {
  const std::optional<double> p = maybe<double>(a, "p");
  if (v.size() == 3 && !p) return {bernoulli(b, v[0], Philox{v[1], v[2]})};
  const Where at = place(b, "bernoulli", v, a);
  return {bernoulli(b, at.sizes, at.philox, p.value_or(0.5))};
}

Operands randintRow(B b, V v, A a) {
  const Where at = place(b, "randint", v, a);
  return {randint(b, at.sizes, at.philox, get<int64_t>(a, "low", 0), need<int64_t>(a, "high"))};
}

Operands dropoutRow(B b, V v, A a) {
  const std::optional<double> p = maybe<double>(a, "p");
  HEDDLE_USER_CHECK(!p || v.size() == 3, "{}: both p={} and {} give the probability; omit one",
                    b.where("dropout"), *p, b.typeOf(v[3]));
  const Philox philox{v[1], v[2]};
  const Dropout r =
      v.size() == 4 ? dropout(b, v[0], philox, v[3]) : dropout(b, v[0], philox, p.value_or(0.5));
  return {r.y, r.mask};
}

const CompositeDef kRandoms[] = {
    {"random_bits", "the bits of philox64 for each element (i64): ([like,] seed, offset)", 2, 1,
     kBits,
     [](B b, V v, A a) {
       const Where at = place(b, "random_bits", v, a);
       return Operands{randomBits(b, at.sizes, at.philox)};
     }},
    {"uniform",
     "uniform from low (0) to below high (1): ([like,] seed, offset). low and high are rounded to "
     "the type first. The result is min(low + u (high - low), the largest number below high), "
     "computed in f64 and rounded once. Here u = w 2^-d, and w is the d highest bits of philox32: "
     "d = 24 for f32, 11 for f16, 8 for bf16. For f64, w is the 53 highest bits of philox64",
     2, 1, kUniform, uniformRow},
    {"normal", "normal distribution with mean (0) and std (1): ([like,] seed, offset)", 2, 1,
     kNormal, normalRow},
    {"bernoulli",
     "bool, true with probability p (0.5), which is 0 to 1: ([like,] seed, offset). An element is "
     "true if philox32 is below p 2^32. With three "
     "operands and without p, operand 0 holds the probability of each element, and the result is 1 "
     "or 0 in its type. A probability below 0 or NaN gives 0, and one above 1 gives 1; PyTorch "
     "raises an error",
     2, 1, kBernoulli, bernoulliRow},
    {"randint",
     "integers (i64) from low (0) to below high, a range of at most 2^63 - 1 numbers: ([like,] "
     "seed, offset)",
     2, 1, kRandint, randintRow},
    {"dropout",
     "y and mask, two results: (x, seed, offset[, p]). Drops elements with probability p (0.5), an "
     "attribute or a scalar operand. A scalar p counts as 0 if it is below 0 or NaN, and as 1 if "
     "it "
     "is above 1",
     3, 1, kDropout, dropoutRow},
};

}  // namespace

std::span<const CompositeDef> randoms() { return kRandoms; }

}  // namespace heddle::composite_rows
