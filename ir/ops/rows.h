#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "ir/ops/op.h"

// The rows of the op table. Each family of ops has one file, rows_<family>.cpp. To add a pointwise
// or reduction op, add a row to one of these files. Also add reference results from PyTorch for the
// test of the op. If the runtime headers of kernels (codegen/runtime) lack the math function of the
// op, add the function there.
namespace heddle::op_rows {

std::span<const OpDef> structuralOps();
std::span<const OpDef> unaryOps();
std::span<const OpDef> binaryOps();
std::span<const OpDef> ternaryOps();
std::span<const OpDef> reductionOps();

// Short names for use in rows.
using K = OpKind;
using R = DTypeRule;

constexpr OpDef noted(std::string_view note, OpDef row) {
  row.note = note;
  return row;
}

// Convert between signed and unsigned numbers. Integer ops must wrap on overflow, as in PyTorch.
// They compute with unsigned numbers, because signed overflow is undefined in C++.
inline int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
inline uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }

using D = const double*;
using I = const int64_t*;
using OnFloats = double (*)(D);
using OnInts = int64_t (*)(I);

// A row of a pointwise op. Its member functions set the fields that only few rows need, and return
// the row.
struct Row : OpDef {
  Row(std::string_view row_name, int operands, R rule, std::string_view kernel_text,
      OnFloats floats, OnInts ints = nullptr)
      : OpDef{row_name, K::Pointwise, operands, rule, kernel_text, floats, ints} {}

  // Returns the row of a unary op that converts its operand to a float type.
  static Row real(std::string_view row_name, std::string_view kernel_text, OnFloats floats) {
    return {row_name, 1, R::PromoteFloat, kernel_text, floats};
  }

  Row& noBools() { return takes_bools = false, *this; }
  Row& bools(OnInts function) { return on_bools = function, *this; }
  Row& singles(float (*function)(const float*)) { return on_singles = function, *this; }
  Row& conditions(int count) { return bool_operands = count, *this; }
  Row& selecting() { return selects = true, *this; }
  Row& optional(std::span<const Scalar> values) { return defaults = values, *this; }
  Row& with(std::span<const AttrSpec> specs) { return attrs = specs, *this; }
  Row& keeps(std::string_view state_type) { return state = state_type, *this; }
  Row& whenRounded(std::string_view near_text) { return rounded_text = near_text, *this; }
  Row& keepsRelativeError() { return keeps_relative_error = true, *this; }
  Row& neverNegative() { return nonnegative = true, *this; }
  Row& says(std::string_view text_for_docs) { return note = text_for_docs, *this; }
};

inline double maxNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::max(a[0], a[1]);
}
inline double minNan(const double* a) {
  return std::isnan(a[0]) ? a[0] : std::isnan(a[1]) ? a[1] : std::min(a[0], a[1]);
}
}  // namespace heddle::op_rows
