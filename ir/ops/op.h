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

// What an op is to the compiler. Every walk that depends on the structure of an op switches over
// this, so a new kind breaks the build wherever it is forgotten; a new pointwise or reduction op is
// a row of the table and touches nothing else.
enum class OpKind : uint8_t {
  Constant,   // scalar literal: attribute `value`
  SizeOf,     // i64 scalar: the unsharded extent of axis `axis` of the input
  Pointwise,  // element by element, operands already of equal rank; casts included
  Reduction,  // over attribute `axes`
  Broadcast,  // inserts broadcast axes at attribute `axes` (positions in the output)
  Expand,     // stretches broadcast axes to attribute `sizes`
  Reshape,    // row-major regrouping to attribute `sizes`
  Permute,    // output axis i is input axis `axes`[i]
  Slice,      // `starts`, `stops` and optional `steps` > 0 per axis
  Full,       // a scalar spread over a new tensor of `sizes`
  Iota,       // i64 tensor of `sizes`: the unsharded index of each element along `axis`
  Index,      // elements of operand 0 at computed places: flip, pad, take, take_along_axis
  Matmul,   // matmul and linear: products accumulated in f32 or wider, an activation, one rounding
  Scan,     // whole lines along `axis`, each on its own: cumsum, argsort
  Scatter,  // operand 0 with elements of operand 2 put or added where operand 1 says along `axis`
  Set,      // same values; the output may have another sharding or layout
};

enum class DTypeRule : uint8_t {
  Promote,       // the promoted type of the operands
  PromoteFloat,  // the same, integers and bools become f32
  Bool,          // compares in the promoted type, gives bool
  Attribute,     // attribute `dtype`
  Wide,          // i64 of operands that are integers
};

// A typed attribute value. Lists of sizes may hold symbols.
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
  // Pointwise: an expression of the kernel language in operands {0}, {1}, ..., all of the compute
  // type; Reduction: the combination of accumulator {0} and element {1}. Functions `hd::...` come
  // from the kernel runtime headers, which exist for CUDA and for C++ with the same names.
  std::string_view text;
  // Reference semantics for floats and for integers; null where the op has none. Bools compute as
  // the integers 0 and 1 unless on_bools is there.
  double (*on_floats)(const double*) = nullptr;
  int64_t (*on_ints)(const int64_t*) = nullptr;
  std::span<const AttrSpec> attrs = {};
  // Reduction: how partial results combine, within a kernel and across ranks.
  std::optional<ReduceOp> reduce_op = std::nullopt;
  // Leading operands that are conditions: bool whatever the others are.
  int bool_operands = 0;
  bool takes_bools = true;  // false: refused, as PyTorch does
  int64_t (*on_bools)(const int64_t*) = nullptr;
  // In f32 proper, for an op that jumps after it rounded; others compute f32 in double and round.
  float (*on_singles)(const float*) = nullptr;
  // Values of the trailing operands that a call may leave out.
  std::span<const Scalar> defaults = {};
  // What the op means beyond its name, and where that is not what PyTorch's does.
  std::string_view note = {};
  // Trailing operands beyond `arity` that may be left out.
  int optional_operands = 0;
};

// Every op in table order.
std::span<const OpDef> opTable();

// nullptr when there is no such op.
const OpDef* findOp(std::string_view name);

// UserError listing the nearest names when there is no such op.
const OpDef& op(std::string_view name);

// Identity element of a reduction in `dtype`: sum 0, prod 1, max -inf or the lowest value of the
// integer type, ...
Scalar identityOf(ReduceOp op, DType dtype);

// The type in which values of `dtype` are computed: floats narrower than f32 in f32, integers in
// i64; bool and f64 are themselves.
DType computeType(DType dtype);

// The dtype of a pointwise op's result for operands promoted to `promoted`; where the rule is an
// attribute, `promoted` itself.
DType resultType(const OpDef& op, DType promoted);

// The type every operand of a pointwise op is converted to before it computes, for a result of
// `result` and operands promoted to `promoted`: comparisons and casts compute in the latter, others
// in the former.
DType operandType(const OpDef& op, DType result, DType promoted);

// PyTorch's result type. Operands are of three kinds: tensors with axes, 0-d tensors and host
// scalars. A kind counts only when its category is higher (bool < integer < float) than that of
// every kind before it; an f64 scalar then gives f32.
enum class OperandKind : uint8_t { Tensor, ZeroDim, Scalar };
struct OperandType {
  DType dtype;
  OperandKind kind;
};
DType promoteOperands(std::span<const OperandType> operands);

}  // namespace heddle
