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

// What an op is to the compiler. Code that depends on the structure of an op switches over the
// kind, so that a new kind breaks the build wherever a case is missing. A new pointwise or
// reduction op needs only a row of the table.
enum class OpKind : uint8_t {
  Constant,   // a scalar literal: attribute `value`
  SizeOf,     // an i64 scalar: the unsharded extent of axis `axis` of the operand
  Pointwise,  // element by element on operands of equal rank; includes casts
  Reduction,  // over attribute `axes`
  Broadcast,  // inserts broadcast axes at the positions `axes` of the output
  Expand,     // stretches broadcast axes to `sizes`
  Reshape,    // regroups the elements in row-major order to `sizes`
  Permute,    // output axis i is input axis `axes`[i]
  Slice,      // `starts`, `stops` and optional `steps` > 0 per axis
  Full,       // a new tensor of `sizes` with a scalar in every element
  Iota,       // a new i64 tensor of `sizes`: the unsharded index of each element along `axis`
  Index,      // elements of operand 0 at computed indices: flip, pad, take, take_along_axis
  Matmul,     // matmul and linear: accumulate in f32 or wider, apply an activation, round once
  Scan,       // each line along `axis` by itself: cumsum, argsort
  Scatter,    // operand 0; stores or adds elements of operand 2 at indices (operand 1) along `axis`
  Set,        // the same values; the output may have another sharding or layout
};

// How the dtype of the result follows from the operands.
enum class DTypeRule : uint8_t {
  Promote,       // the promoted type of the operands
  PromoteFloat,  // the same, but integers and bools become f32
  Bool,          // computes in the promoted type, gives bool
  Attribute,     // attribute `dtype`
  Wide,          // i64; the operands are integers
};

// A typed attribute value. Lists of sizes may contain symbols.
using Attr = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                          std::vector<Size>>;
enum class AttrType : uint8_t { Bool, Int, Float, Name, DType, Ints, Sizes, Scalar };

struct AttrSpec {
  std::string_view name;
  AttrType type;  // Scalar: bool, i64 or f64 literal
  bool required = true;
};

inline constexpr int kMaxOperands = 4;

// One row of the op table.
struct OpDef {
  std::string_view name;  // also the text form: name(%a, %b, attr=value)
  OpKind kind;
  int arity;
  DTypeRule dtype_rule;
  // The kernel text. Pointwise: an expression of the operands {0}, {1}, ..., which have the compute
  // type. Reduction: combines the accumulator {0} with the element {1}. The runtime headers of
  // kernels define the functions `hd::...`, with the same names for CUDA and C++.
  std::string_view text;
  // Reference functions for floats and for integers; null if the op refuses them. Bools compute as
  // the integers 0 and 1, unless there is on_bools.
  double (*on_floats)(const double*) = nullptr;
  int64_t (*on_ints)(const int64_t*) = nullptr;
  std::span<const AttrSpec> attrs = {};
  // Reduction: how to combine partial results, within a kernel and across ranks.
  std::optional<ReduceOp> reduce_op = std::nullopt;
  // The number of leading operands that are conditions. These are always bool.
  int bool_operands = 0;
  bool takes_bools = true;  // false: the op refuses bools, as PyTorch does
  int64_t (*on_bools)(const int64_t*) = nullptr;
  // The reference in f32, for an op that is discontinuous in a rounded intermediate result. Other
  // ops compute f32 in double and round the result.
  float (*on_singles)(const float*) = nullptr;
  // Default values of the trailing operands, which a call may omit.
  std::span<const Scalar> defaults = {};
  // A note for docs/ops.md: what the name does not say, and how the op differs from PyTorch's.
  std::string_view note = {};
  // The number of operands after the first `arity`, which a call may omit.
  int optional_operands = 0;
};

// Returns all ops in the order of the table.
std::span<const OpDef> opTable();

// Returns the op of this name; nullptr: there is none.
const OpDef* findOp(std::string_view name);

// Returns the op of this name. Throws UserError with the nearest name if there is none.
const OpDef& op(std::string_view name);

// Returns the identity element of a reduction in `dtype`: 0 for sum and avg, 1 for prod. For max it
// is -inf or the lowest integer of the type, for min inf or the highest integer.
Scalar identityOf(ReduceOp op, DType dtype);

// Returns the type in which heddle computes with values of `dtype`: f32 for floats up to f32, i64
// for integers, and `dtype` itself for bool and f64.
DType computeType(DType dtype);

// Returns the dtype of the result of a pointwise op whose operands have the common type `promoted`.
// For DTypeRule::Attribute it returns `promoted`.
DType resultType(const OpDef& op, DType promoted);

// Returns the type to which a pointwise op converts its operands before it computes. `result` is
// the dtype of the result, `promoted` the common type of the operands. Comparisons and casts
// compute in the compute type of `promoted`, other ops in that of `result`.
DType operandType(const OpDef& op, DType result, DType promoted);

// Returns the common type of operands by PyTorch's rules. There are three kinds of operands, in
// this order: tensors with axes, 0-d tensors and host scalars. A kind affects the type only if its
// category (bool < integer < float) is higher than that of all kinds before it. A float scalar then
// gives f32. If all operands are scalars, the result is their promote().
enum class OperandKind : uint8_t { Tensor, ZeroDim, Scalar };
struct OperandType {
  DType dtype;
  OperandKind kind;
};
DType promoteOperands(std::span<const OperandType> operands);

}  // namespace heddle
