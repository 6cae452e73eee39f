// FusionBuilder: apply(), pointwise ops, and the ops broadcast, reshape, permute and set.
#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/graph/promote_operands.h"
#include "ir/ops/literal.h"

namespace heddle {
namespace {

Value tensorResult(DType dtype, std::vector<IterDomain> domain) {
  Value value;
  value.tensor.dtype = dtype;
  value.tensor.domain = std::move(domain);
  return value;
}

std::string_view describe(AttrType type) {
  switch (type) {
    case AttrType::Bool:
      return "true or false";
    case AttrType::Int:
      return "an integer";
    case AttrType::Float:
      return "a number";
    case AttrType::Name:
      return "a name";
    case AttrType::DType:
      return "a dtype";
    case AttrType::Ints:
      return "a list of integers";
    case AttrType::Sizes:
      return "a list of sizes";
    case AttrType::Size:
      return "a size";
    case AttrType::Number:
      return "a number or a size";
    case AttrType::Literal:
      return "a literal";
  }
  HEDDLE_CHECK(false, "attribute type {} is not in the enum", static_cast<int>(type));
}

const Attr* findAttr(const std::vector<std::pair<std::string, Attr>>& attrs,
                     std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

template <class T>
T attrOr(const std::vector<std::pair<std::string, Attr>>& attrs, std::string_view name, T missing) {
  const Attr* attr = findAttr(attrs, name);
  return attr == nullptr ? missing : std::get<T>(*attr);
}

void checkAttrs(const OpDef& op, const std::string& where,
                const std::vector<std::pair<std::string, Attr>>& attrs) {
  for (const auto& [key, value] : attrs) {
    auto spec = std::find_if(op.attrs.begin(), op.attrs.end(),
                             [&name = key](const AttrSpec& s) { return s.name == name; });
    HEDDLE_USER_CHECK(spec != op.attrs.end(), "{}: there is no attribute '{}'", where, key);
    HEDDLE_USER_CHECK(hasType(value, spec->type), "{}: attribute '{}' must be {}", where, key,
                      describe(spec->type));
    HEDDLE_USER_CHECK(findAttr(attrs, key) == &value, "{}: attribute '{}' is given twice", where,
                      key);
  }
  for (const AttrSpec& spec : op.attrs) {
    HEDDLE_USER_CHECK(!spec.required || findAttr(attrs, spec.name) != nullptr,
                      "{}: attribute '{}' is missing ({})", where, spec.name, describe(spec.type));
  }
}

void checkType(const OpDef& op, DType promoted, const std::string& where) {
  HEDDLE_USER_CHECK_CODE(Type, promoted != DType::Bool || op.takes_bools,
                         "{}: bool is refused, got only bool operands; cast one first", where);
  HEDDLE_USER_CHECK_CODE(Type, isFloat(promoted) || op.on_ints != nullptr,
                         "{}: {} is not a float type", where, name(promoted));
  HEDDLE_USER_CHECK_CODE(Type, !isFloat(promoted) || op.on_floats != nullptr,
                         "{}: {} is not an integer type", where, name(promoted));
}

}  // namespace

void FusionBuilder::addDefaults(const OpDef& def, std::vector<ValueId>& operands) {
  const size_t required = static_cast<size_t>(def.arity) - def.defaults.size();
  std::string result_name = std::exchange(pending_name_, "");
  while (operands.size() < static_cast<size_t>(def.arity)) {
    operands.push_back(constant(def.defaults[operands.size() - required]));
  }
  pending_name_ = std::move(result_name);
}

// The order of the steps for pointwise ops matters. fitParameters() changes types, so it must run
// before the common type is computed. fitOperands() needs the common type. It treats tensors
// without axes in a special way, so it must run before missing axes are added.
ValueId FusionBuilder::apply(std::string_view op_name, std::vector<ValueId> operands, Attrs attrs) {
  const OpDef& def = op(op_name);
  const size_t least = static_cast<size_t>(def.arity) - def.defaults.size();
  const size_t most = def.arity + def.optional_operands;
  HEDDLE_USER_CHECK(operands.size() >= least && operands.size() <= most,
                    "{} takes {} operand(s), got {}", where(op_name),
                    most > least ? fmt::format("{} to {}", least, most) : fmt::format("{}", least),
                    operands.size());
  addDefaults(def, operands);
  checkAttrs(def, where(op_name), attrs);
  for (ValueId id : operands) {
    HEDDLE_USER_CHECK(fusion_.values().has(id), "{}: there is no value with id {}", where(op_name),
                      id);
  }
  if (def.kind != OpKind::Pointwise) return applyStructural(def, operands, attrs);

  fitParameters(*this, def, operands);
  std::vector<OperandType> types;
  size_t rank = 0;
  bool all_scalars = true;
  const bool moves_bits = op_name == "cast" || op_name == "where";
  for (size_t i = 0; i < operands.size(); ++i) {
    const Value& value = fusion_.value(operands[i]);
    all_scalars = all_scalars && value.is_scalar;
    rank = std::max(rank, value.tensor.rank());
    if (static_cast<int>(i) >= def.bool_operands) {
      if (!moves_bits) refuseFloat8(op_name, operands[i]);
      types.push_back({value.tensor.dtype, kindOf(value)});
    } else {
      HEDDLE_USER_CHECK_CODE(Type, value.tensor.dtype == DType::Bool,
                             "{}: condition {} must be bool", where(op_name), typeOf(operands[i]));
    }
  }
  if (moves_bits) checkFloat8Operands(op_name, operands, def.bool_operands);
  DType dtype = promoteOperands(types);
  // If the condition of `where` is the only tensor, float scalars give f32, as in PyTorch.
  const bool only_scalars = std::all_of(types.begin(), types.end(), [](const OperandType& type) {
    return type.kind == OperandKind::HostScalar;
  });
  if (only_scalars && !all_scalars && isFloat(dtype)) dtype = DType::F32;
  if (def.dtype_rule == DTypeRule::PromoteFloat) dtype = resultType(def, dtype);
  checkType(def, dtype, where(op_name));
  if (!all_scalars) fitOperands(*this, def, operands, dtype);
  dtype = resultType(def, dtype);
  if (def.dtype_rule == DTypeRule::Attribute) dtype = std::get<DType>(*findAttr(attrs, "dtype"));
  if (all_scalars) {
    Value result = tensorResult(dtype, {});
    result.is_scalar = true;
    return append(def, std::move(operands), std::move(attrs), std::move(result));
  }

  // Add missing leading axes by explicit broadcasts, so that all operands have the same rank in
  // later stages.
  std::string result_name = std::exchange(pending_name_, "");
  std::vector<ValueId> tensors;
  for (ValueId& id : operands) {
    if (fusion_.value(id).is_scalar) continue;
    const size_t missing = rank - fusion_.tensor(id).rank();
    if (missing > 0) {
      AxisOrder leading = rowMajor(missing);
      id = broadcast(id, std::vector<int64_t>(leading.begin(), leading.end()));
    }
    tensors.push_back(id);
  }
  pending_name_ = std::move(result_name);
  std::vector<IterDomain> domain;
  for (size_t axis = 0; axis < rank; ++axis) {
    domain.push_back(broadcastAxis(op_name, tensors, axis));
  }
  return append(def, std::move(operands), std::move(attrs), tensorResult(dtype, std::move(domain)));
}

ValueId FusionBuilder::applyStructural(const OpDef& def, const std::vector<ValueId>& operands,
                                       const Attrs& attrs) {
  auto ints = [&](std::string_view key) {
    return std::get<std::vector<int64_t>>(*findAttr(attrs, key));
  };
  auto integer = [&](std::string_view key) { return std::get<int64_t>(*findAttr(attrs, key)); };
  auto sizes = [&](std::string_view key) {
    return std::get<std::vector<Size>>(*findAttr(attrs, key));
  };
  switch (def.kind) {
    case OpKind::Constant:
      return constant(literalValue(*findAttr(attrs, "value")));
    case OpKind::SizeOf:
      return sizeOf(operands[0], integer("axis"));
    case OpKind::Reduction:
      return reduce(def.name, operands[0], attrOr(attrs, "axes", AxisOrder{}),
                    attrOr(attrs, "keepdim", false));
    case OpKind::Broadcast:
      return broadcast(operands[0], ints("axes"));
    case OpKind::Expand:
      return expand(operands[0], sizes("sizes"));
    case OpKind::Reshape:
      return reshape(operands[0], sizes("sizes"), attrOr(attrs, "gather_uneven", false));
    case OpKind::Permute:
      return permute(operands[0], ints("axes"));
    case OpKind::Diagonal: {
      const auto axis1 = attrOr<int64_t>(attrs, "axis1", 0);
      const auto axis2 = attrOr<int64_t>(attrs, "axis2", 1);
      const Size offset = attrOr(attrs, "offset", std::vector<Size>{Size(0)}).front();
      if (offset.isConstant()) return diagonal(operands[0], offset.constant(), axis1, axis2);
      // Only a run knows the sign of the offset. One slice along both axes therefore removes the
      // elements before the diagonal; along one of them it removes nothing.
      std::vector<Size> stops = tensorOf("diagonal", operands[0]).sizes();
      std::vector<Size> starts(stops.size(), Size(0));
      for (const auto& [axis, skipped] : {std::pair(axis1, Size(0) - offset), {axis2, offset}}) {
        const size_t i = normalizeAxis("diagonal", axis, stops.size());
        starts[i] = Size::min(Size::max(skipped, Size(0)), stops[i]);
      }
      std::string result_name = std::exchange(pending_name_, "");
      const ValueId moved = slice(operands[0], std::move(starts), std::move(stops));
      pending_name_ = std::move(result_name);
      return diagonal(moved, 0, axis1, axis2);
    }
    case OpKind::Slice:
      return slice(operands[0], sizes("starts"), sizes("stops"),
                   attrOr(attrs, "steps", std::vector<int64_t>{}));
    case OpKind::Full:
      return full(operands[0], sizes("sizes"), std::get<DType>(*findAttr(attrs, "dtype")));
    case OpKind::Iota:
      return iota(sizes("sizes"), integer("axis"));
    case OpKind::Index:
      if (def.name == "flip") return flip(operands[0], ints("axes"));
      if (def.name == "pad") {
        const Attr* mode = findAttr(attrs, "mode");
        HEDDLE_USER_CHECK(mode == nullptr || std::get<std::string>(*mode) == "constant",
                          "{}: found mode={}, expected constant", where("pad"),
                          std::get<std::string>(*mode));
        return pad(operands[0], sizes("lows"), sizes("highs"), operands[1]);
      }
      if (def.name == "take") return take(operands[0], operands[1], integer("axis"));
      return takeAlongAxis(operands[0], operands[1], integer("axis"));
    case OpKind::Scan: {
      if (def.name == "cumsum") return cumsum(operands[0], integer("axis"));
      const Attr* first = findAttr(attrs, "first");
      return argsort(operands[0], attrOr<int64_t>(attrs, "axis", -1),
                     attrOr(attrs, "descending", false),
                     first == nullptr ? std::nullopt : std::optional(std::get<int64_t>(*first)));
    }
    case OpKind::Scatter:
      return scatterBy(
          def.name, operands[0], operands[1], operands[2], integer("axis"),
          findAttr(attrs, "stretch") != nullptr && std::get<bool>(*findAttr(attrs, "stretch")));
    case OpKind::Matmul: {
      ProductOptions options;
      if (const Attr* name = findAttr(attrs, "activation")) {
        options.activation = std::get<std::string>(*name);
      }
      if (const Attr* name = findAttr(attrs, "precision")) {
        options.precision = std::get<std::string>(*name);
      }
      if (const Attr* dtype = findAttr(attrs, "dtype")) options.dtype = std::get<DType>(*dtype);
      if (def.name == "matmul") return matmul(operands[0], operands[1], options);
      return linear(operands[0], operands[1],
                    operands.size() > 2 ? std::optional(operands[2]) : std::nullopt, options);
    }
    case OpKind::Set:
      return set(operands[0]);
    case OpKind::Pointwise:
      break;
  }
  HEDDLE_CHECK(false, "{} is not structural", def.name);
}

ValueId FusionBuilder::broadcast(ValueId value, std::vector<int64_t> output_axes) {
  const TensorView tensor = tensorOf("broadcast", value);
  const size_t rank = tensor.rank() + output_axes.size();
  for (int64_t& axis : output_axes) axis = normalizeAxis("broadcast", axis, rank);
  std::sort(output_axes.begin(), output_axes.end());
  const auto twice = std::adjacent_find(output_axes.begin(), output_axes.end());
  HEDDLE_USER_CHECK(twice == output_axes.end(), "{}: axis {} is listed twice", where("broadcast"),
                    *twice);
  std::vector<IterDomain> domain;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    const bool added =
        std::binary_search(output_axes.begin(), output_axes.end(), static_cast<int64_t>(i));
    domain.push_back(added ? IterDomain{Size(1), IterKind::Broadcast} : tensor.domain[next++]);
  }
  return append(op("broadcast"), {value}, {{"axes", std::move(output_axes)}},
                tensorResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::reshape(ValueId value, std::vector<Size> sizes, bool gather_uneven) {
  const TensorView tensor = tensorOf("reshape", value);
  const Size before = product(tensor.sizes());
  resolveOpenSize(sizes, before);
  checkSizes("reshape", sizes);
  const Size after = product(sizes);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                         !before.isConstant() || !after.isConstant() || before == after,
                         "{}: {} has {} elements, the new shape has {}", where("reshape"),
                         typeOf(value), before.str(), after.str());
  if (!(before == after)) {
    fusion_.guards.push_back(
        {before, after,
         fmt::format("elements of {} before and after {}", typeOf(value), where("reshape"))});
  }
  std::vector<IterDomain> domain;
  for (const Size& size : sizes) domain.push_back({size, IterKind::Iteration});
  Attrs attrs = {{"sizes", std::move(sizes)}};
  if (gather_uneven) attrs.emplace_back("gather_uneven", true);
  return append(op("reshape"), {value}, std::move(attrs),
                tensorResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::permute(ValueId value, std::vector<int64_t> axes) {
  const TensorView tensor = tensorOf("permute", value);
  for (int64_t& axis : axes) axis = normalizeAxis("permute", axis, tensor.rank());
  AxisOrder sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  HEDDLE_USER_CHECK(sorted == rowMajor(tensor.rank()),
                    "{}: axes {} are no permutation of the axes of {}", where("permute"), str(axes),
                    typeOf(value));
  std::vector<IterDomain> domain;
  for (int64_t axis : axes) domain.push_back(tensor.domain[axis]);
  return append(op("permute"), {value}, {{"axes", std::move(axes)}},
                tensorResult(tensor.dtype, std::move(domain)));
}

ValueId FusionBuilder::set(ValueId value) {
  const TensorView tensor = tensorOf("set", value);
  return append(op("set"), {value}, {}, tensorResult(tensor.dtype, tensor.domain));
}

}  // namespace heddle
