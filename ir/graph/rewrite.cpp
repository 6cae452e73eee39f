#include "ir/graph/rewrite.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle {
namespace {

// Returns whether the name may be a default name of FusionBuilder, such as T0 or S0.
bool mayBeBuilders(const std::string& name) { return name[0] == 'T' || name[0] == 'S'; }

}  // namespace

FusionRewriter::FusionRewriter(const Fusion& from) : FusionRewriter(from, from.name, {}) {
  for (const Value& value : from.values()) keepName(value);
}

FusionRewriter::FusionRewriter(const Fusion& from, std::string name,
                               const std::vector<ValueId>& part)
    : from_(from), builder_(std::move(name)) {
  builder_.mutableFusion().meshes = from.meshes;
  builder_.mutableFusion().symbolic_sizes = from.symbolic_sizes;
  for (ValueId id : part) keepName(from.value(id));
}

void FusionRewriter::keepName(const Value& value) {
  names_.add(value.name);
  if (mayBeBuilders(value.name)) builder_.keepFree(value.name);
}

void FusionRewriter::inputs() {
  for (ValueId id : from_.inputs()) input(id);
}

ValueId FusionRewriter::input(ValueId old) {
  const Value& value = from_.value(old);
  builder_.line(value.line);
  ValueId now = value.is_scalar
                    ? builder_.scalarInput(value.name, value.tensor.dtype, value.default_value)
                    : builder_.input(value.name, value.tensor);
  builder_.mutableFusion().mutableValue(now).equals = value.equals;
  adopt(now, old);
  if (value.definition != kNoExpr) fusion().layout(now) = {};
  return now;
}

void FusionRewriter::adopt(ValueId now, ValueId old) {
  const Value& source = from_.value(old);
  Value& value = builder_.mutableFusion().mutableValue(now);
  HEDDLE_CHECK(value.is_scalar == source.is_scalar && value.tensor.dtype == source.tensor.dtype &&
                   value.tensor.domain == source.tensor.domain,
               "%{} changed its type while the fusion was rebuilt", source.name);
  value.tensor = source.tensor;
  value.user_sharding = source.user_sharding;
  value.line = source.line;
  stand(old, now);
}

std::vector<ValueId> FusionRewriter::operandsOf(ExprId old) const {
  std::vector<ValueId> operands;
  for (ValueId input : from_.expr(old).inputs) operands.push_back(at(input));
  return operands;
}

ValueId FusionRewriter::copy(ExprId old) { return copyOn(old, operandsOf(old)); }

ValueId FusionRewriter::copyWithType(ExprId old) {
  const ValueId result = from_.expr(old).outputs.at(0);
  const ValueId now = copyAside(old, operandsOf(old), from_.value(result).name);
  fusion().mutableValue(now).tensor = from_.tensor(result);
  stand(result, now);
  return now;
}

ValueId FusionRewriter::copyOn(ExprId old, std::vector<ValueId> operands) {
  ValueId result = from_.expr(old).outputs.at(0);
  ValueId now = copyAside(old, std::move(operands), from_.value(result).name);
  adopt(now, result);
  return now;
}

ValueId FusionRewriter::copyAside(ExprId old, std::vector<ValueId> operands,
                                  const std::string& name) {
  const Expression& expr = from_.expr(old);
  builder_.name(name).line(expr.line);
  return builder_.apply(expr.op->name, std::move(operands), expr.attrs);
}

ValueId FusionRewriter::set(ValueId value, const std::string& wanted, int line) {
  builder_.name(freeName(wanted)).line(line);
  return builder_.set(value);
}

ValueId FusionRewriter::setAs(ValueId value, ValueId old) {
  builder_.name(from_.value(old).name).line(from_.value(old).line);
  ValueId now = builder_.set(value);
  adopt(now, old);
  return now;
}

ValueId FusionRewriter::at(ValueId old) const {
  const auto found = map_.find(old);
  HEDDLE_CHECK(found != map_.end(), "%{} is used before it is rebuilt", from_.value(old).name);
  return found->second;
}

void FusionRewriter::output(ValueId old, std::optional<AxisOrder> order) {
  builder_.output(at(old), std::move(order));
}

// Returns the reuse of an output in the new fusion. Finds the input by its position, not with map_:
// map_ may map the input to a replacement.
std::optional<OutputReuse> FusionRewriter::reuseOf(size_t output) const {
  std::optional<OutputReuse> reuse = from_.reuses().at(output);
  if (!reuse) return reuse;
  const std::vector<ValueId>& old = from_.inputs();
  const auto position = std::find(old.begin(), old.end(), reuse->input) - old.begin();
  reuse->input = builder_.fusion().inputs().at(position);
  return reuse;
}

std::string FusionRewriter::freeName(const std::string& wanted) { return names_.fresh(wanted); }

Fusion FusionRewriter::finish() && {
  return std::move(*this).finishWith(std::vector<ValueId>(from_.outputs().size(), kNoValue));
}

Fusion FusionRewriter::finishWith(const std::vector<ValueId>& outputs) && {
  for (size_t i = 0; i < from_.outputs().size(); ++i) {
    const ValueId output = outputs.at(i) == kNoValue ? at(from_.outputs()[i]) : outputs[i];
    builder_.mutableFusion().appendOutput(output, from_.outputOrders()[i], reuseOf(i));
  }
  Fusion& fusion = builder_.mutableFusion();
  fusion.guards = from_.guards;
  fusion.size_defaults = from_.size_defaults;
  fusion.inheritAnnotations(from_, [this](ValueId old) -> std::optional<ValueId> {
    const auto found = map_.find(old);
    return found == map_.end() ? std::nullopt : std::optional<ValueId>(found->second);
  });
  return std::move(builder_).build();
}

Fusion FusionRewriter::finishPart() && {
  builder_.mutableFusion().guards.clear();
  return std::move(builder_).build();
}

}  // namespace heddle
