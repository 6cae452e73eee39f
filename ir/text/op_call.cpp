#include "ir/text/op_call.h"

#include <limits>

#include "ir/base/edit_distance.h"
#include "ir/base/error.h"
#include "ir/composite/table.h"

namespace heddle {
namespace {

std::string_view nearestOp(std::string_view name) {
  std::string_view nearest;
  size_t best = std::numeric_limits<size_t>::max();
  auto consider = [&](std::string_view candidate) {
    size_t distance = editDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  };
  for (const OpDef& op : opTable()) consider(op.name);
  for (const CompositeDef& composite : compositeTable()) consider(composite.name);
  return nearest;
}

}  // namespace

CallShape callShape(const std::string& op_name) {
  if (const OpDef* op = findOp(op_name)) return {op->attrs, op->kind == OpKind::Constant};
  if (const CompositeDef* composite = findComposite(op_name)) return {composite->attrs, false};
  // Do not search for the nearest name if `op_name` is very long. No op has a similar name, and
  // editDistance() would take too long.
  constexpr size_t kLongestName = 40;
  if (op_name.size() > kLongestName) userError("there is no op '{}'", op_name);
  userError("there is no op '{}'; the nearest name is '{}'", op_name, nearestOp(op_name));
}

std::vector<ValueId> buildCall(FusionBuilder& builder, const std::string& op_name,
                               std::vector<ValueId> operands, Attrs attrs) {
  const CompositeDef* composite = findComposite(op_name);
  if (composite == nullptr) return {builder.apply(op_name, std::move(operands), std::move(attrs))};
  return buildComposite(builder, *composite, operands, attrs);
}

}  // namespace heddle
