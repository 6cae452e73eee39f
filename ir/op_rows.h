#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "ir/op.h"

// The rows of the op table, one file a family. A new pointwise or reduction op is a row in one of
// them and its golden, and nothing else.
namespace heddle::op_rows {

std::span<const OpDef> structuralOps();
std::span<const OpDef> unaryOps();
std::span<const OpDef> binaryOps();
std::span<const OpDef> ternaryOps();
std::span<const OpDef> reductionOps();

// Short names, for rows.
using K = OpKind;
using R = DTypeRule;

// Unsigned arithmetic wraps, as PyTorch's int64 does, where signed overflow would be undefined.
inline int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
inline uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }

using D = const double*;
using I = const int64_t*;

inline double maxNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::max(a[0], a[1]);
}
inline double minNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::min(a[0], a[1]);
}
}  // namespace heddle::op_rows
