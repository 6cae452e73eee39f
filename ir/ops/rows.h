#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "ir/ops/op.h"

// The rows of the op table, one file a family. A new pointwise or reduction op is a row in one of
// them (with its math function, if the kernel language lacks it) and its golden, and nothing else.
namespace heddle::op_rows {

std::span<const OpDef> structuralOps();
std::span<const OpDef> unaryOps();
std::span<const OpDef> binaryOps();
std::span<const OpDef> ternaryOps();
std::span<const OpDef> reductionOps();

// Short names, for rows.
using K = OpKind;
using R = DTypeRule;

// A row with a note for docs/ops.md.
constexpr OpDef noted(std::string_view note, OpDef row) {
  row.note = note;
  return row;
}

// Unsigned arithmetic wraps, as PyTorch's int64 does, where signed overflow would be undefined.
inline int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
inline uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }

using D = const double*;
using I = const int64_t*;
using OnFloats = double (*)(D);
using OnInts = int64_t (*)(I);

// A pointwise op while its row is written: what few rows say is said by name.
struct Row : OpDef {
  Row(std::string_view row_name, int operands, R rule, std::string_view kernel_text,
      OnFloats floats, OnInts ints = nullptr)
      : OpDef{row_name, K::Pointwise, operands, rule, kernel_text, floats, ints} {}

  // Made a float, computed as a float.
  static Row real(std::string_view row_name, std::string_view kernel_text, OnFloats floats) {
    return {row_name, 1, R::PromoteFloat, kernel_text, floats};
  }

  Row& noBools() { return takes_bools = false, *this; }
  Row& bools(OnInts function) { return on_bools = function, *this; }
  Row& singles(float (*function)(const float*)) { return on_singles = function, *this; }
  Row& conditions(int count) { return bool_operands = count, *this; }
  Row& optional(std::span<const Scalar> values) { return defaults = values, *this; }
  Row& with(std::span<const AttrSpec> specs) { return attrs = specs, *this; }
  Row& says(std::string_view text_for_docs) { return note = text_for_docs, *this; }
};

inline double maxNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::max(a[0], a[1]);
}
inline double minNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::min(a[0], a[1]);
}
}  // namespace heddle::op_rows
