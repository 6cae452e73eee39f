#include "ir/graph/promote_operands.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/ops/literal.h"

namespace heddle {
namespace {

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool isHalfType(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

std::optional<Scalar> literalOf(const Fusion& fusion, ValueId id) {
  const ExprId definition = fusion.value(id).definition;
  if (definition == kNoExpr || fusion.expr(definition).op->kind != OpKind::Constant) return {};
  return literalValue(*fusion.expr(definition).find("value"));
}

// Returns a scalar rounded to `dtype`. A literal that `dtype` cannot represent becomes another
// literal; a scalar that is not a literal is cast.
ValueId rounded(FusionBuilder& b, ValueId id, DType dtype) {
  const std::optional<Scalar> literal = literalOf(b.fusion(), id);
  if (!literal) return b.fusion().tensor(id).dtype == dtype ? id : b.cast(id, dtype);
  const Scalar value = roundTo(dtype, *literal);
  const double before = toDouble(*literal);
  return toDouble(value) == before || std::isnan(before) ? id : b.constant(value);
}

// The ways in which an op uses a scalar operand if its tensors are integers.
enum class ScalarUse : uint8_t {
  Wraps,   // the result wraps, so the scalar may wrap too without changing the result
  Number,  // the op compares with, divides by, shifts by or selects the exact value
  Lower,   // the scalar is a lower bound
  Upper,   // the scalar is an upper bound
};
ScalarUse useOf(const OpDef& def, size_t operand) {
  if (def.dtype_rule == DTypeRule::Bool &&
      !isOneOf(def.name, {"logical_and", "logical_or", "logical_xor"})) {
    return ScalarUse::Number;
  }
  if (def.name == "clamp") return operand == 1 ? ScalarUse::Lower : ScalarUse::Upper;
  if (isOneOf(def.name, {"maximum", "fmax"})) return ScalarUse::Lower;
  if (isOneOf(def.name, {"minimum", "fmin"})) return ScalarUse::Upper;
  const bool number = isOneOf(def.name, {"div_floor", "div_trunc", "fmod", "remainder", "threshold",
                                         "where", "bitwise_left_shift", "bitwise_right_shift"});
  return number ? ScalarUse::Number : ScalarUse::Wraps;
}

ValueId besideIntegers(FusionBuilder& b, const OpDef& def, ValueId id, size_t operand,
                       DType dtype) {
  const ScalarUse use = useOf(def, operand);
  const std::optional<Scalar> literal = literalOf(b.fusion(), id);
  if (use == ScalarUse::Wraps) return id;
  if (!literal) return use == ScalarUse::Number ? rounded(b, id, dtype) : id;
  const IntRange range = rangeOf(dtype);
  const bool too_low = use != ScalarUse::Lower && toInt(*literal) < range.lowest;
  const bool too_high = use != ScalarUse::Upper && toInt(*literal) > range.highest;
  HEDDLE_USER_CHECK_CODE(Type, !too_low && !too_high,
                         "{}: {} is no number of {}, which holds {} to {}", b.where(def.name),
                         printScalar(*literal), name(dtype), range.lowest, range.highest);
  return id;
}

// Holds the name that the caller requested for the result, so that no converted operand gets this
// name.
class KeptName {
 public:
  explicit KeptName(FusionBuilder& b) : b_(b), name_(b.takePendingName()) {}
  void giveBack() {
    if (!name_.empty()) b_.name(std::move(name_));
  }

 private:
  FusionBuilder& b_;
  std::string name_;
};

}  // namespace

void fitParameters(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands) {
  if (!isOneOf(def.name, {"threshold", "addcmul"})) return;
  std::optional<DType> integers;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Value& value = b.fusion().value(operands[i]);
    if (value.is_scalar) continue;
    if (isFloat(value.tensor.dtype)) return;
    integers = integers ? promote(*integers, value.tensor.dtype) : value.tensor.dtype;
  }
  if (!integers || *integers == DType::Bool) return;
  KeptName kept(b);
  for (size_t i = def.name == "threshold" ? 1 : 3; i < operands.size(); ++i) {
    ValueId& id = operands[i];
    const Value& value = b.fusion().value(id);
    if (!value.is_scalar || !isFloat(value.tensor.dtype)) continue;
    const std::optional<Scalar> literal = literalOf(b.fusion(), id);
    HEDDLE_USER_CHECK_CODE(Type, !literal || std::fabs(toDouble(*literal)) < 0x1p63,
                           "{}: {} is no number of {}", b.where(def.name), printScalar(*literal),
                           name(*integers));
    id = literal ? b.constant(Scalar(toInt(*literal))) : b.cast(id, DType::I64);
  }
  kept.giveBack();
}

void fitOperands(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands,
                 DType promoted) {
  const size_t first = def.bool_operands;
  const bool narrow = promoted == DType::U8 || promoted == DType::I8 || promoted == DType::I32;
  const bool moves_bits = def.name == "cast" || def.name == "where";
  KeptName kept(b);
  for (size_t i = first; i < operands.size(); ++i) {
    const Value& value = b.fusion().value(operands[i]);
    const DType dtype = value.tensor.dtype;
    if (value.is_scalar) {
      if (isHalfType(promoted) && def.dtype_rule == DTypeRule::Bool) {
        operands[i] = rounded(b, operands[i], promoted);
      } else if (narrow && def.name != "cast") {
        operands[i] = besideIntegers(b, def, operands[i], i, promoted);
      }
    } else if (isHalfType(promoted) && !moves_bits &&
               (dtype == DType::I64 || dtype == DType::I32)) {
      operands[i] = b.cast(operands[i], promoted);
    } else if (kindOf(value) == OperandKind::ZeroDim && dtype != promoted &&
               promote(dtype, promoted) != promoted) {
      operands[i] = b.cast(operands[i], promoted);
    }
  }
  kept.giveBack();
}

}  // namespace heddle
