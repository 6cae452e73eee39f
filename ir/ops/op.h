#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/base/dtype.h"
#include "ir/base/size.h"
#include "ir/types/sharding.h"

namespace heddle {

// The structure of an op. Code that depends on the structure switches over the kind without a
// default case. The build therefore fails at each switch that lacks a case for a new kind. A new
// pointwise or reduction op needs no new kind, only a row of the op table.
enum class OpKind : uint8_t {
  Constant,   // a scalar literal: attribute `value`
  SizeOf,     // an i64 scalar: the unsharded extent of axis `axis` of the operand
  Pointwise,  // computes each element from the operands' elements at the same index: add, cast
  Reduction,  // reduces the axes in attribute `axes`
  Broadcast,  // inserts broadcast axes (extent 1); `axes` are their indices in the output
  Expand,     // stretches axes of extent 1 to `sizes`
  Reshape,    // gives the elements the new `sizes`, in row-major order
  Permute,    // output axis i is input axis `axes`[i]
  Slice,      // selects elements start, start + step, ... before stop along each axis
  Diagonal,   // the elements with equal indices along `axis1` and `axis2`, as a new last axis
  Full,       // a new tensor of `sizes` with a scalar in every element
  Iota,       // a new i64 tensor of `sizes`: the unsharded index of each element along `axis`
  Index,      // elements of operand 0 at computed indices: flip, pad, take, take_along_axis
  Matmul,     // matmul and linear: accumulate in f32 or wider, apply an activation, round once
  Scan,       // computes each line (the elements along `axis`) separately: cumsum, argsort
  Scatter,  // a copy of operand 0 in which elements of operand 2 are stored or added along `axis`,
            // at the indices in operand 1
  Set,      // the same values; sharding or layout of the output may differ
};

// How heddle executes the ops of a kind.
enum class OpRole : uint8_t {
  Host,     // the host evaluates the scalar
  Kernel,   // a kernel that heddle generates. If all operands of a pointwise op are scalars, the
            // host evaluates the op instead. A broadcast or expand may instead be a view
  Library,  // a library call
  View,     // the result refers to the memory of the operand; some reshapes need a copy
  Set,      // a view, a copy or a collective, as the shardings and layouts require
};
OpRole roleOf(OpKind kind);

// The rule that determines the dtype of the result of a pointwise op. For all other ops,
// FusionBuilder (ir/graph/builder.h) determines the dtype and ignores the rule.
enum class DTypeRule : uint8_t {
  Promote,       // the common type of the operands (promoteOperands())
  PromoteFloat,  // the common type of the operands, or f32 if the common type is no float type
  Bool,          // bool; the op computes in the common type of the operands
  Attribute,     // the value of attribute `dtype`
  Wide,          // i64; the operands must be integers
};

// A typed attribute value. Lists of sizes may contain symbols.
using Attr = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                          std::vector<Size>>;
// An attribute of type Size or Number has a list of one size as its value. The value of a Number
// may also be an f64 literal. Number occurs only in attributes of composite ops
// (ir/composite/composite.h).
enum class AttrType : uint8_t { Bool, Int, Float, Name, DType, Ints, Sizes, Literal, Size, Number };

struct AttrSpec {
  std::string_view name;
  AttrType type;  // Literal: bool, i64 or f64 literal
  bool required = true;
};

// Returns whether the value has the type.
bool hasType(const Attr& attr, AttrType type);

inline constexpr int kMaxOperands = 4;

// One row of the op table.
struct OpDef {
  std::string_view name;  // also the text form: name(%a, %b, attr=value)
  OpKind kind;
  int arity;
  DTypeRule dtype_rule;
  // The C++ expression that a kernel contains for the op. For a pointwise op, {0}, {1}, ... are the
  // operands, converted to the compute type. For a reduction, {0} is the accumulator and {1} is the
  // next element. The headers that kernels include define the functions `hd::...`, for CUDA and for
  // C++.
  std::string_view text;
  // Functions of pointwise ops and reductions for floats and for integers, which the reference
  // evaluation calls (ir/reference/reference.h). If on_floats is nullptr, the op does not accept
  // floats. If on_ints is nullptr, the op does not accept integers, unless `dtype_rule` is
  // PromoteFloat: the op then converts integers to f32. For bools the reference calls on_bools if
  // it is set, otherwise on_ints with 0 and 1.
  double (*on_floats)(const double*) = nullptr;
  int64_t (*on_ints)(const int64_t*) = nullptr;
  std::span<const AttrSpec> attrs = {};
  // The operation that combines the partial results of a reduction, within a kernel and across
  // ranks.
  std::optional<ReduceOp> reduce_op = std::nullopt;
  // The number of leading operands that are conditions. These are always bool.
  int bool_operands = 0;
  bool takes_bools = true;  // false: it is an error if the common type of the operands is bool
  int64_t (*on_bools)(const int64_t*) = nullptr;
  // The reference function for f32 operands. An op needs this function if a small rounding
  // difference in an intermediate value can change the final result a lot, as in trunc(a / b).
  // Without this function, the reference computes in double and rounds the result to f32.
  float (*on_singles)(const float*) = nullptr;
  // The default values of the trailing operands that a call may omit.
  std::span<const Scalar> defaults = {};
  // A note for docs/ops.md. It states what the name of the op does not say, and how the op differs
  // from PyTorch's op.
  std::string_view note = {};
  // A type that the headers of kernels define, or empty. A thread keeps one object of this type for
  // the op while it computes neighbouring elements. `text` refers to the object by the next number
  // after the operands, such as {2} for an op with two operands. The object only saves time: the
  // result must not depend on what the object computed before.
  std::string_view state = {};
  // true: the result is one of the operands that are not conditions, so it needs no rounding.
  bool selects = false;
  // An approximation of `text` for f32, with a relative error of at most 2^-16. Kernels use it for
  // results that matter only after they are rounded to 16 bits or less. Empty: they use `text`.
  std::string_view rounded_text = {};
  // true: a relative error of an operand causes about the same relative error of the result.
  bool keeps_relative_error = false;
  bool nonnegative = false;  // true: no float result is negative
  // The number of additional operands after the first `arity` operands. A call has all of them or
  // none.
  int optional_operands = 0;
};

std::span<const OpDef> opTable();

// Returns the op of this name, or nullptr if there is none.
const OpDef* findOp(std::string_view name);

// Returns the op of this name. Throws UserError if there is none. If the name of an op is similar,
// the message suggests it.
const OpDef& op(std::string_view name);

// Returns the identity element of a reduction in `dtype`:
//  - sum, avg: 0
//  - prod:     1
//  - max:      -inf for floats, the lowest value for integers, false for bool
//  - min:      inf for floats, the highest value for integers, true for bool
Scalar identityOf(ReduceOp op, DType dtype);

// Returns the type in which heddle computes with values of `dtype`: f32 for all float types except
// f64, i64 for integers, and `dtype` itself for bool and f64.
DType computeType(DType dtype);

// Returns the dtype of the result of a pointwise op whose operands have the common type `promoted`.
// For DTypeRule::Attribute it returns `promoted`.
DType resultType(const OpDef& op, DType promoted);

// Returns the type to which a pointwise op converts its operands before it computes. `result` is
// the dtype of the result, `promoted` the common type of the operands. Ops with a bool result, and
// casts, compute in computeType(promoted). Other ops compute in computeType(result).
DType operandType(const OpDef& op, DType result, DType promoted);

// The kinds of operands in the order in which promoteOperands() considers them: tensors with axes,
// 0-d tensors, scalars in host memory.
enum class OperandKind : uint8_t { Tensor, ZeroDim, HostScalar };
struct OperandType {
  DType dtype;
  OperandKind kind;
};

// Returns the common type of operands by PyTorch's rules:
//  1. For each OperandKind, promote() (ir/base/dtype.h) gives the common type of the operands of
//     this kind. If some operand is a tensor, a float type of the scalars counts as f32.
//  2. The result is the one of these types with the highest category. The categories are bool,
//     integer and float, in ascending order.
//  3. If several of these types have the highest category, the result is the type of the kind that
//     comes first in OperandKind.
DType promoteOperands(std::span<const OperandType> operands);

}  // namespace heddle
