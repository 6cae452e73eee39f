#include "ir/reference/noise.h"

#include <algorithm>
#include <cmath>

#include "ir/reference/parallel.h"

namespace heddle {
namespace {

// Returns a hash of x in which every bit of x affects every bit. This is the finalizer of
// splitmix64.
uint64_t scrambled(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns the distance from 1 to the next larger number of the type. Returns 0 for types whose
// values get no errors.
double ulpOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    default:
      return 0;
  }
}

// Returns whether one element of the result combines several elements of the operands.
bool combinesElements(OpKind kind) {
  return kind == OpKind::Reduction || kind == OpKind::Matmul || kind == OpKind::Scan ||
         kind == OpKind::Scatter;
}

// Returns the size of the error of a result that combines `terms` elements, in units in the last
// place.
double ulpsOfResult(const OpDef& op, double terms) {
  const double growth = op.reduce_op == ReduceOp::Prod ? terms / 64 : std::log2(terms) / 4;
  return kNoiseUlps * std::max(1.0, growth);
}

// Returns the values with errors of up to `ulps` units in the last place. If `has_full_size` is
// true, all errors have this size.
HostTensor noisy(const HostTensor& value, uint64_t seed, double ulps = kNoiseUlps,
                 bool has_full_size = false) {
  HostTensor out(value.dtype, value.sizes);
  const double size = ulps * ulpOf(value.dtype);
  inParallel(out.numel(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t bits = scrambled(seed + static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u);
      double unit = static_cast<double>(bits >> 11) * 0x1p-52 - 1;  // in [-1, 1)
      if (has_full_size) unit = unit < 0 ? -1 : 1;
      out.set(i, toDouble(value.at(i)) * (1 + size * unit));
    }
  });
  return out;
}

}  // namespace

void RoundingNoise::addToResult(const Fusion& fusion, const Expression& expr, ValueId out,
                                double terms, HostTensor& value) const {
  const bool combines = combinesElements(expr.op->kind);
  const bool computes = combines || expr.op->kind == OpKind::Pointwise;
  if (!computes || ulpOf(value.dtype) == 0 || fusion.value(out).is_scalar) return;
  const double ulps = combines ? ulpsOfResult(*expr.op, terms) : kNoiseUlps;
  value = noisy(value, scrambled(seed_ ^ scrambled(out.index() + 1)), ulps, combines);
}

void RoundingNoise::addToOperand(const Expression& expr, size_t k, HostTensor& value) const {
  if (!combinesElements(expr.op->kind) || ulpOf(value.dtype) == 0) return;
  value = noisy(value, scrambled(seed_ ^ ~scrambled(expr.outputs[0].index() * 4 + k + 1)));
}

}  // namespace heddle
