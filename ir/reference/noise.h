#pragma once

#include <cstdint>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// Random errors of the size of roundings, for evaluations that estimate how much roundings can
// change a result (Monte Carlo arithmetic: D. S. Parker, "Monte Carlo Arithmetic", 1997). The
// differences between such evaluations and the plain one show the condition of each element: they
// are large where the element is a small difference of large terms.
//
// Every float that an op computes, and every f32 or f64 operand of a sum, is multiplied by 1 + e.
// Here e is random in -kNoiseUlps .. kNoiseUlps units in the last place of its dtype.
inline constexpr double kNoiseUlps = 4;

class RoundingNoise {
 public:
  explicit RoundingNoise(uint64_t seed) : seed_(seed) {}

  // Change `value`, which belongs to the result of `expr` or to its operand number `k`. The errors
  // depend on the seed, the value and the position of the element.
  void addToResult(const Fusion& fusion, const Expression& expr, ValueId out,
                   HostTensor& value) const;
  void addToOperand(const Expression& expr, size_t k, HostTensor& value) const;

 private:
  uint64_t seed_;
};

}  // namespace heddle
