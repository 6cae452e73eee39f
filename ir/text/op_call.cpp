#include "ir/text/op_call.h"

#include "ir/base/check.h"
#include "ir/base/edit_distance.h"
#include "ir/composite/table.h"

namespace heddle {
namespace {

std::string suggestedOp(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OpDef& op : opTable()) names.push_back(op.name);
  for (const CompositeDef& composite : compositeTable()) names.push_back(composite.name);
  return suggestionFor(name, names);
}

}  // namespace

CallShape callShape(const std::string& op_name) {
  if (const OpDef* op = findOp(op_name)) return {op->attrs, op->kind == OpKind::Constant};
  if (const CompositeDef* composite = findComposite(op_name)) return {composite->attrs, false};
  userError("there is no op '{}'{}", op_name, suggestedOp(op_name));
}

std::string attrsOf(const std::string& op, const CallShape& shape) {
  if (shape.attrs.empty()) return fmt::format("')', because {} has no attributes", op);
  std::string out = fmt::format("an attribute of {}: ", op);
  for (size_t i = 0; i < shape.attrs.size(); ++i) {
    if (i > 0) out += i + 1 == shape.attrs.size() ? " or " : ", ";
    out += shape.attrs[i].name;
  }
  return out;
}

std::vector<ValueId> buildCall(FusionBuilder& builder, const std::string& op_name,
                               std::vector<ValueId> operands, Attrs attrs) {
  const CompositeDef* composite = findComposite(op_name);
  if (composite == nullptr) return {builder.apply(op_name, std::move(operands), std::move(attrs))};
  return buildComposite(builder, *composite, operands, attrs);
}

}  // namespace heddle
