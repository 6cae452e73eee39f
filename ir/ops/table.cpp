// The op table, composed of the rows in ir/ops/rows_*.cpp. Also the functions that classify op
// kinds and attributes, and the rules for dtypes.
#include <limits>

#include "ir/base/check.h"
#include "ir/base/edit_distance.h"
#include "ir/ops/rows.h"

namespace heddle {
namespace {

int category(DType dtype) { return dtype == DType::Bool ? 0 : isFloat(dtype) ? 2 : 1; }

}  // namespace

std::span<const OpDef> opTable() {
  static const std::vector<OpDef> table = [] {
    std::vector<OpDef> rows;
    for (std::span<const OpDef> family :
         {op_rows::structuralOps(), op_rows::unaryOps(), op_rows::binaryOps(),
          op_rows::ternaryOps(), op_rows::reductionOps()}) {
      rows.insert(rows.end(), family.begin(), family.end());
    }
    return rows;
  }();
  return table;
}

const OpDef* findOp(std::string_view name) {
  for (const OpDef& row : opTable()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const OpDef& op(std::string_view name) {
  if (const OpDef* found = findOp(name)) return *found;
  std::vector<std::string_view> names;
  for (const OpDef& row : opTable()) names.push_back(row.name);
  userError("there is no op '{}'{}", name, suggestionFor(name, names));
}

OpRole roleOf(OpKind kind) {
  switch (kind) {
    case OpKind::Constant:
    case OpKind::SizeOf:
      return OpRole::Host;
    case OpKind::Pointwise:
    case OpKind::Reduction:
    case OpKind::Broadcast:
    case OpKind::Expand:
    case OpKind::Full:
    case OpKind::Iota:
    case OpKind::Index:
      return OpRole::Kernel;
    case OpKind::Matmul:
    case OpKind::Scan:
    case OpKind::Scatter:
      return OpRole::Library;
    case OpKind::Reshape:
    case OpKind::Permute:
    case OpKind::Slice:
    case OpKind::Diagonal:
      return OpRole::View;
    case OpKind::Set:
      return OpRole::Set;
  }
  HEDDLE_CHECK(false, "op kind {} is not in the enum", static_cast<int>(kind));
}

bool hasType(const Attr& attr, AttrType type) {
  switch (type) {
    case AttrType::Bool:
      return std::holds_alternative<bool>(attr);
    case AttrType::Int:
      return std::holds_alternative<int64_t>(attr);
    case AttrType::Float:
      return std::holds_alternative<double>(attr);
    case AttrType::Name:
      return std::holds_alternative<std::string>(attr);
    case AttrType::DType:
      return std::holds_alternative<DType>(attr);
    case AttrType::Ints:
      return std::holds_alternative<std::vector<int64_t>>(attr);
    case AttrType::Sizes:
    case AttrType::Size:
      return std::holds_alternative<std::vector<Size>>(attr);
    case AttrType::Number:
      return std::holds_alternative<std::vector<Size>>(attr) ||
             std::holds_alternative<double>(attr);
    case AttrType::Literal:
      return std::holds_alternative<bool>(attr) || std::holds_alternative<int64_t>(attr) ||
             std::holds_alternative<double>(attr);
  }
  HEDDLE_CHECK(false, "attribute type {} is not in the enum", static_cast<int>(type));
}

Scalar identityOf(ReduceOp op, DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      return roundTo(dtype, int64_t{0});
    case ReduceOp::Prod:
      return roundTo(dtype, int64_t{1});
    case ReduceOp::Min:
      return isFloat(dtype) ? Scalar(inf) : roundTo(dtype, rangeOf(dtype).highest);
    case ReduceOp::Max:
      return isFloat(dtype) ? Scalar(-inf) : roundTo(dtype, rangeOf(dtype).lowest);
  }
  HEDDLE_CHECK(false, "reduction {} is not in the enum", static_cast<int>(op));
}

DType computeType(DType dtype) {
  if (dtype == DType::Bool || dtype == DType::F64) return dtype;
  return isFloat(dtype) ? DType::F32 : DType::I64;
}

DType resultType(const OpDef& op, DType promoted) {
  switch (op.dtype_rule) {
    case DTypeRule::PromoteFloat:
      return isFloat(promoted) ? promoted : DType::F32;
    case DTypeRule::Bool:
      return DType::Bool;
    case DTypeRule::Wide:
      return DType::I64;
    case DTypeRule::Promote:
    case DTypeRule::Attribute:
      return promoted;
  }
  HEDDLE_CHECK(false, "dtype rule {} is not in the enum", static_cast<int>(op.dtype_rule));
}

DType operandType(const OpDef& op, DType result, DType promoted) {
  // Ops that give bools (DTypeRule::Bool), such as comparisons, compute in the common type of their
  // operands. A cast needs the unconverted operand, because the type of the operand matters: a cast
  // to i8 saturates an f32, but wraps an i64.
  const bool of_operands =
      op.dtype_rule == DTypeRule::Bool || op.dtype_rule == DTypeRule::Attribute;
  return computeType(of_operands ? promoted : result);
}

DType promoteOperands(std::span<const OperandType> operands) {
  std::optional<DType> kinds[3];
  for (const OperandType& operand : operands) {
    std::optional<DType>& kind = kinds[static_cast<size_t>(operand.kind)];
    kind = kind ? promote(*kind, operand.dtype) : operand.dtype;
  }
  const auto& [tensors, points, scalars] = kinds;
  HEDDLE_CHECK(tensors || points || scalars, "an op without operands has no promoted type");
  if (!tensors && !points) return *scalars;
  std::optional<DType> result = scalars;
  if (result && isFloat(*result)) result = DType::F32;
  for (const std::optional<DType>& before : {points, tensors}) {
    if (before && (!result || category(*result) <= category(*before))) result = before;
  }
  return *result;
}

}  // namespace heddle
