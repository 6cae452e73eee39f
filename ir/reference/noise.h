#pragma once

#include <cstdint>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// Random errors of the size of rounding errors. An evaluation with these errors, compared with an
// evaluation without them, shows how much rounding can change each element of a result. The change
// is large if the element is a small difference of large terms. The method is described in
// D. S. Parker, "Monte Carlo Arithmetic", 1997.
//
// Each affected value is multiplied by 1 + e. Usually e is random in [-kNoiseUlps, kNoiseUlps)
// units in the last place of the dtype of the value. Results that combine n elements are an
// exception, because they round n times. If the elements are equal, all these rounding errors can
// have the same sign and add up. Random errors of the operands would instead cancel each other. For
// results that combine n elements, e is + or - a fixed number of units:
//  - kNoiseUlps * max(1, n / 64) for prod. If the factors are equal, each of the n multiplications
//    may add the same relative error, whatever their order.
//  - kNoiseUlps * max(1, log2(n) / 4) for all other reductions, matrix products, scans and scatters
// These values are affected:
//  - f32 and f64 results of pointwise ops, reductions, matrix products, scans and scatters, except
//    scalars
//  - f32 and f64 operands of reductions, matrix products, scans and scatters
// Values of narrower float types are not affected, because an error of a few of their units would
// hide wrong results. A device computes such values in f32. Device and reference both round them
// once.
inline constexpr double kNoiseUlps = 4;

class RoundingNoise {
 public:
  explicit RoundingNoise(uint64_t seed) : seed_(seed) {}

  // Add errors to the elements of `value` if this value is affected. In addToResult(), `value` is
  // the result `out` of `expr`; `terms` is the number of elements that one element of the result
  // combines. In addToOperand(), `value` is operand number `k` of `expr`. The errors depend on the
  // seed, on `out` or on `expr` and `k`, and on the position of the element.
  void addToResult(const Fusion& fusion, const Expression& expr, ValueId out, double terms,
                   HostTensor& value) const;
  void addToOperand(const Expression& expr, size_t k, HostTensor& value) const;

 private:
  uint64_t seed_;
};

}  // namespace heddle
