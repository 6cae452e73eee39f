#include "ir/graph/builder.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/declared_sizes.h"
#include "ir/graph/print_values.h"
#include "ir/types/axis_limit.h"

namespace heddle {
namespace {

Value tensorValue(DType dtype, std::vector<IterDomain> domain) {
  Value value;
  value.tensor.dtype = dtype;
  value.tensor.domain = std::move(domain);
  return value;
}

Value scalarValue(DType dtype) {
  Value value;
  value.is_scalar = true;
  value.tensor.dtype = dtype;
  return value;
}

bool isName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
}

}  // namespace

FusionBuilder::FusionBuilder(std::string fusion_name) { fusion_.name = std::move(fusion_name); }

std::string FusionBuilder::where(std::string_view op_name) const {
  return line_ > 0 ? fmt::format("{} at line {}", op_name, line_) : std::string(op_name);
}

std::string FusionBuilder::typeOf(ValueId id) const {
  const Value& value = fusion_.value(id);
  if (value.definition != kNoExpr) {
    const Expression& made = fusion_.expr(value.definition);
    // Show what the caller wrote: the literal, or the tensor to which the builder added leading
    // axes.
    if (made.op->kind == OpKind::Constant) return printAttr(*made.find("value"));
    if (made.op->kind == OpKind::Broadcast && value.name == fmt::format("T{}", id)) {
      return typeOf(made.inputs[0]);
    }
  }
  const auto declared = fusion_.annotation<SharedDeclaredSizes>(kDeclaredSizes);
  return typeText(value, declared ? declared->get() : nullptr);
}

FusionBuilder& FusionBuilder::name(std::string value_name) {
  HEDDLE_USER_CHECK(isName(value_name), "'{}' is not a name for a value", value_name);
  HEDDLE_USER_CHECK(!names_.contains(value_name), "value %{} is defined twice", value_name);
  pending_name_ = std::move(value_name);
  return *this;
}

FusionBuilder& FusionBuilder::line(int source_line) {
  line_ = source_line;
  return *this;
}

void FusionBuilder::rename(ValueId value, std::string value_name) {
  Value& target = fusion_.mutableValue(value);
  if (target.name == value_name) return;
  name(value_name);
  names_.erase(target.name);
  target.name = takePendingName();
  names_.insert(target.name);
}

std::string FusionBuilder::takeName(bool scalar) {
  if (!pending_name_.empty()) return std::exchange(pending_name_, "");
  std::string name = fmt::format("{}{}", scalar ? 'S' : 'T', fusion_.values().size());
  while (names_.contains(name) || kept_.contains(name)) name += '_';
  return name;
}

MeshId FusionBuilder::mesh(DeviceMesh mesh) {
  HEDDLE_USER_CHECK(!mesh.axes.empty() && mesh.axes.size() <= 3,
                    "mesh @{} has {} axes; it needs 1 to 3", mesh.name, mesh.axes.size());
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const auto expected = static_cast<MeshAxis>(mesh.axes.size() - 1 - i);
    HEDDLE_USER_CHECK(mesh.axes[i].axis == expected,
                      "mesh {}: axes are listed outermost first and are [x], [y, x] or [z, y, x]",
                      mesh.str());
    HEDDLE_USER_CHECK(mesh.axes[i].size > 0 || mesh.axes[i].size == DeviceMesh::kFromJob,
                      "mesh {}: axis {} has no devices", mesh.str(),
                      heddle::name(mesh.axes[i].axis));
  }
  HEDDLE_USER_CHECK(knownDevices(mesh).has_value(), "mesh {} has too many devices", mesh.str());
  std::vector<int64_t> ranks = mesh.ranks;
  std::sort(ranks.begin(), ranks.end());
  HEDDLE_USER_CHECK(
      ranks.empty() || mesh.sizeIsFromJob() || static_cast<int64_t>(ranks.size()) == mesh.size(),
      "mesh {} lists {} ranks", mesh.str(), ranks.size());
  HEDDLE_USER_CHECK(std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end() &&
                        (ranks.empty() || ranks[0] >= 0),
                    "mesh {}: its ranks must be distinct and not negative", mesh.str());
  for (const DeviceMesh& other : fusion_.meshes) {
    HEDDLE_USER_CHECK(other.name != mesh.name, "mesh @{} is defined twice", mesh.name);
  }
  return fusion_.meshes.push_back(std::move(mesh));
}

ValueId FusionBuilder::addInput(Value value) {
  value.line = line_;
  markSymbolicAxes(value);
  names_.insert(value.name);
  const ValueId id = fusion_.appendValue(std::move(value));
  fusion_.appendInput(id);
  for (const IterDomain& axis : fusion_.tensor(id).domain) {
    if (const std::string* symbol = symbolOf(axis.extent)) inputs_of_symbol_[*symbol].push_back(id);
  }
  return id;
}

ValueId FusionBuilder::input(std::string input_name, DType dtype, std::vector<Size> sizes) {
  TensorView tensor;
  tensor.dtype = dtype;
  for (Size& size : sizes) tensor.domain.push_back({std::move(size), IterKind::Iteration});
  return input(std::move(input_name), std::move(tensor));
}

ValueId FusionBuilder::input(std::string input_name, TensorView tensor) {
  name(std::move(input_name));
  HEDDLE_USER_CHECK(tensor.rank() <= kMostAxes, "input %{} has {} axes, and at most {} are allowed",
                    pending_name_, tensor.rank(), kMostAxes);
  for (const IterDomain& axis : tensor.domain) {
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, !axis.extent.isConstant() || axis.extent.constant() >= 0,
                           "input %{} has the negative extent {}", pending_name_,
                           axis.extent.str());
  }
  Value value = tensorValue(tensor.dtype, std::move(tensor.domain));
  value.tensor.layout = std::move(tensor.layout);
  value.name = takeName(false);
  const ValueId id = addInput(std::move(value));
  if (tensor.sharding) shard(id, std::move(*tensor.sharding));
  return id;
}

void FusionBuilder::sizeDefault(const std::string& symbol, int64_t value) {
  HEDDLE_USER_CHECK(value >= 0 || isScalarSymbol(symbol), "size {} has the negative default {}",
                    symbol, value);
  constexpr size_t kMostDefaults = 10'000;
  HEDDLE_USER_CHECK(fusion_.size_defaults.size() < kMostDefaults,
                    "the default of size {} is number {}, and at most {} are allowed", symbol,
                    fusion_.size_defaults.size() + 1, kMostDefaults);
  HEDDLE_USER_CHECK(default_symbols_.insert(symbol).second, "size {} has two defaults", symbol);
  fusion_.size_defaults.emplace_back(symbol, value);
}

ValueId FusionBuilder::append(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                              Value result) {
  HEDDLE_USER_CHECK(result.tensor.rank() <= kMostAxes,
                    "{}: the result has {} axes, and at most {} are allowed", where(op.name),
                    result.tensor.rank(), kMostAxes);
  result.name = takeName(result.is_scalar);
  result.line = line_;
  markSymbolicAxes(result);
  names_.insert(result.name);
  const ValueId id = fusion_.appendValue(std::move(result));
  fusion_.appendExpr({&op, std::move(inputs), {id}, std::move(attrs), line_});
  return id;
}

const TensorView& FusionBuilder::tensorOf(std::string_view op_name, ValueId id) const {
  HEDDLE_USER_CHECK(fusion_.values().has(id), "{}: there is no value with id {}", where(op_name),
                    id);
  HEDDLE_USER_CHECK_CODE(Type, !fusion_.value(id).is_scalar,
                         "{}: operand {} is a scalar, expected a tensor", where(op_name),
                         typeOf(id));
  return fusion_.tensor(id);
}

void FusionBuilder::refuseFloat8(std::string_view op_name, ValueId id) const {
  HEDDLE_USER_CHECK_CODE(
      Type, !isFloat8(fusion_.tensor(id).dtype),
      "{}: {} is of an f8 type, which only casts, data movement and matrix products "
      "accept: cast it",
      where(op_name), typeOf(id));
}

void FusionBuilder::checkFloat8Operands(std::string_view op_name,
                                        const std::vector<ValueId>& operands, int first) const {
  ValueId seen = kNoValue;
  for (size_t i = first; i < operands.size(); ++i) {
    if (fusion_.value(operands[i]).is_scalar) continue;
    const DType dtype = fusion_.tensor(operands[i]).dtype;
    const DType other = seen == kNoValue ? dtype : fusion_.tensor(seen).dtype;
    HEDDLE_USER_CHECK_CODE(Type, dtype == other || (!isFloat8(dtype) && !isFloat8(other)),
                           "{}: {} and {} have no common type: cast one of them", where(op_name),
                           typeOf(seen), typeOf(operands[i]));
    seen = operands[i];
  }
}

int64_t FusionBuilder::normalizeAxis(std::string_view op_name, int64_t axis, size_t rank) const {
  const auto n = static_cast<int64_t>(rank);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, axis >= -n && axis < n,
                         "{}: axis {} is out of range for {} axes", where(op_name), axis, n);
  return axis < 0 ? axis + n : axis;
}

ValueId FusionBuilder::constant(Scalar value) {
  const DType dtype = std::holds_alternative<bool>(value)      ? DType::Bool
                      : std::holds_alternative<int64_t>(value) ? DType::I64
                                                               : DType::F64;
  Attr attr = std::visit([](auto v) { return Attr(v); }, value);
  return append(op("constant"), {}, {{"value", std::move(attr)}}, scalarValue(dtype));
}

ValueId FusionBuilder::sizeOf(ValueId tensor, int64_t axis) {
  axis = normalizeAxis("size", axis, tensorOf("size", tensor).rank());
  return append(op("size"), {tensor}, {{"axis", axis}}, scalarValue(DType::I64));
}

IterDomain FusionBuilder::broadcastAxis(std::string_view op_name,
                                        const std::vector<ValueId>& tensors, size_t axis) {
  const IterDomain* chosen = nullptr;
  ValueId source = kNoValue;
  std::vector<Size> symbolic;  // extents that may be 1
  for (ValueId id : tensors) {
    const IterDomain& mine = fusion_.tensor(id).domain[axis];
    if (mine.extent.isConstant(1)) continue;
    if (mine.kind == IterKind::Symbolic) {
      symbolic.push_back(mine.extent);
      continue;
    }
    if (chosen == nullptr) {
      chosen = &mine;
      source = id;
      continue;
    }
    if (mine.extent == chosen->extent) continue;
    const std::string both = fmt::format("axis {} of {} and of {}, operands of {}", axis,
                                         typeOf(source), typeOf(id), where(op_name));
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, !mine.extent.isConstant() || !chosen->extent.isConstant(),
                           "{}: shapes disagree, {} and {} ({})", where(op_name),
                           chosen->extent.str(), mine.extent.str(), both);
    fusion_.guards.push_back({chosen->extent, mine.extent, both});
  }
  if (chosen != nullptr) return {chosen->extent, IterKind::Iteration};
  if (!symbolic.empty()) return symbolicAxis(symbolic);
  const bool all_broadcast = std::all_of(tensors.begin(), tensors.end(), [&](ValueId id) {
    return fusion_.tensor(id).domain[axis].kind == IterKind::Broadcast;
  });
  return {Size(1), all_broadcast ? IterKind::Broadcast : IterKind::Iteration};
}

ValueId FusionBuilder::pointwise(std::string_view op_name, std::vector<ValueId> operands) {
  return apply(op_name, std::move(operands));
}

ValueId FusionBuilder::cast(ValueId value, DType dtype) {
  return apply("cast", {value}, {{"dtype", dtype}});
}

ValueId FusionBuilder::reduce(std::string_view op_name, ValueId value, std::vector<int64_t> axes,
                              bool keepdim) {
  const OpDef& def = op(op_name);
  HEDDLE_USER_CHECK(def.kind == OpKind::Reduction, "{} is not a reduction", where(op_name));
  const TensorView tensor = tensorOf(op_name, value);
  refuseFloat8(op_name, value);
  axes = axes.empty() ? rowMajor(tensor.rank())
                      : normalizeAxes(op_name, std::move(axes), tensor.rank());
  std::vector<IterDomain> domain;
  for (size_t i = 0; i < tensor.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      domain.push_back(tensor.domain[i]);
    } else if (keepdim) {
      domain.push_back({Size(1), IterKind::Broadcast});
    }
  }
  // As in PyTorch, sums and products of integers and of bools are i64.
  const bool counts = def.reduce_op == ReduceOp::Sum || def.reduce_op == ReduceOp::Prod;
  const DType dtype = counts && !isFloat(tensor.dtype) ? DType::I64 : tensor.dtype;
  Attrs attrs = {{"axes", std::move(axes)}};
  if (keepdim) attrs.emplace_back("keepdim", true);
  return append(def, {value}, std::move(attrs), tensorValue(dtype, std::move(domain)));
}

// Checks the mesh first, because the other checks need it. Then checks the axes, the partial
// entries and the stream split. Changes the value only after all checks.
void FusionBuilder::shard(ValueId id, Sharding sharding) {
  const std::string target = typeOf(id);
  const TensorView& tensor = tensorOf("shard", id);
  HEDDLE_USER_CHECK(fusion_.meshes.has(sharding.mesh),
                    "{}: its sharding names no mesh of the fusion", target);
  const DeviceMesh& mesh = fusion_.meshes[sharding.mesh];
  HEDDLE_USER_CHECK(sharding.axes.size() <= tensor.rank(), "{} has no axis {} to shard", target,
                    sharding.axes.size() - 1);
  sharding.axes.resize(tensor.rank());
  std::vector<MeshAxis> used;
  auto use = [&](MeshAxis axis) {
    HEDDLE_USER_CHECK(mesh.has(axis), "{}: mesh {} has no axis {}", target, mesh.str(),
                      heddle::name(axis));
    HEDDLE_USER_CHECK(std::find(used.begin(), used.end(), axis) == used.end(),
                      "{}: mesh axis {} is used twice in {}", target, heddle::name(axis),
                      sharding.str(mesh));
    used.push_back(axis);
  };
  for (size_t i = 0; i < sharding.axes.size(); ++i) {
    for (MeshAxis axis : sharding.axes[i]) use(axis);
    const ExprId definition = fusion_.value(id).definition;
    const bool reduced = tensor.domain[i].kind == IterKind::Broadcast && definition != kNoExpr &&
                         fusion_.expr(definition).op->kind == OpKind::Reduction;
    HEDDLE_USER_CHECK(sharding.axes[i].empty() || !reduced,
                      "{}: axis {} is reduced to one element and cannot be sharded", target, i);
    HEDDLE_USER_CHECK(sharding.axes[i].empty() || tensor.domain[i].kind != IterKind::Broadcast,
                      "{}: axis {} is a broadcast axis and cannot be sharded", target, i);
    HEDDLE_USER_CHECK(sharding.axes[i].empty() || tensor.domain[i].kind != IterKind::Symbolic,
                      "{}: axis {} may have the size 1 (a size with '?') and cannot be sharded",
                      target, i);
  }
  for (const Sharding::Partial& partial : sharding.partial) {
    use(partial.axis);
    HEDDLE_USER_CHECK(partial.op != ReduceOp::Avg || isFloat(tensor.dtype),
                      "{}: partial(avg) needs a float type", target);
    HEDDLE_USER_CHECK_CODE(Type, !isFloat8(tensor.dtype), "{}: an f8 type cannot be partial",
                           target);
  }
  if (sharding.stream) {
    HEDDLE_USER_CHECK(sharding.stream->axis >= 0 &&
                          sharding.stream->axis < static_cast<int64_t>(tensor.rank()) &&
                          sharding.stream->chunks > 0,
                      "{}: stream({}: {}) needs an axis of the tensor and at least one chunk",
                      target, sharding.stream->axis, sharding.stream->chunks);
  }
  Value& value = fusion_.mutableValue(id);
  HEDDLE_USER_CHECK(!value.user_sharding || value.tensor.sharding == sharding,
                    "{} is sharded twice: {} and {}", target,
                    value.tensor.sharding->str(fusion_.meshes[value.tensor.sharding->mesh]),
                    sharding.str(mesh));
  value.user_sharding = true;
  value.tensor.sharding = std::move(sharding);
}

void FusionBuilder::checkOrder(ValueId value, const AxisOrder& order) const {
  const TensorView& tensor = tensorOf("order", value);
  AxisOrder sorted = order;
  std::sort(sorted.begin(), sorted.end());
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, sorted == rowMajor(tensor.rank()),
                         "order={} of {}: expected each of its {} axes once, as in order={}",
                         str(order), typeOf(value), tensor.rank(), str(rowMajor(tensor.rank())));
}

void FusionBuilder::requireOrder(ValueId value, AxisOrder order) {
  checkOrder(value, order);
  HEDDLE_USER_CHECK(fusion_.value(value).definition != kNoExpr,
                    "order={} of {}: callers choose the order of an input; return it with this "
                    "order, or copy it with set",
                    str(order), typeOf(value));
  std::optional<AxisOrder>& current = fusion_.layout(value).required;
  HEDDLE_USER_CHECK(!current || *current == order, "{} is given two orders: {} and {}",
                    typeOf(value), str(*current), str(order));
  current = std::move(order);
}

void FusionBuilder::output(ValueId value, std::optional<AxisOrder> order,
                           std::optional<OutputReuse> reuse) {
  HEDDLE_USER_CHECK(fusion_.values().has(value), "return: there is no value with id {}", value);
  if (order) checkOrder(value, *order);
  HEDDLE_USER_CHECK(!order || !reuse,
                    "return: {} is stored in %{} and has the memory order of this input: remove "
                    "order={}",
                    typeOf(value), fusion_.value(reuse->input).name, str(*order));
  if (reuse) checkReuse(value, reuse->input);
  fusion_.appendOutput(value, std::move(order), reuse);
}

void FusionBuilder::setStrideOrder(size_t output, AxisOrder order) {
  HEDDLE_USER_CHECK(output < fusion_.outputs().size(),
                    "setStrideOrder: there is no output {}, the fusion has {} so far", output,
                    fusion_.outputs().size());
  checkOrder(fusion_.outputs()[output], order);
  const std::optional<AxisOrder>& current = fusion_.outputOrders()[output];
  HEDDLE_USER_CHECK(!current || *current == order, "output {} ({}) is given two orders: {} and {}",
                    output, typeOf(fusion_.outputs()[output]), str(*current), str(order));
  fusion_.setOutputOrder(output, std::move(order));
}

Fusion FusionBuilder::build() && {
  HEDDLE_USER_CHECK(!fusion_.outputs().empty(), "fusion {} returns nothing", fusion_.name);
  return std::move(fusion_);
}

}  // namespace heddle
