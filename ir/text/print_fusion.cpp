#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/base/check.h"
#include "ir/base/print_list.h"
#include "ir/graph/print_values.h"
#include "ir/text/fusion_text.h"
#include "ir/text/text_pieces.h"

namespace heddle {
namespace {

constexpr size_t kColumns = 100;

// Returns whether the attribute is an optional flag with the value false. Such flags are not
// printed.
bool isDefault(const OpDef& op, const std::string& name, const Attr& attr) {
  const bool* flag = std::get_if<bool>(&attr);
  if (flag == nullptr || *flag) return false;
  for (const AttrSpec& spec : op.attrs) {
    if (spec.name == name) return !spec.required && spec.type == AttrType::Bool;
  }
  return false;
}

std::string printArguments(const Fusion& fusion, const Expression& expr) {
  if (expr.op->kind == OpKind::Constant) {
    return join(expr.attrs, [](const auto& attr) { return printAttr(attr.second); });
  }
  std::string out =
      join(expr.inputs, [&](ValueId id) { return printValueName(fusion.value(id).name); });
  for (const auto& [name, attr] : expr.attrs) {
    if (isDefault(*expr.op, name, attr)) continue;
    if (!out.empty()) out += ", ";
    out += name + "=" + printAttr(attr);
  }
  return out;
}

std::string printInput(const Fusion& fusion, ValueId id) {
  const Value& value = fusion.value(id);
  std::string out = printValueName(value.name) + ": ";
  if (!value.is_scalar) {
    return out + printShape(value.tensor) +
           printSuffix(value.tensor, value.user_sharding, fusion.meshes);
  }
  out += name(value.tensor.dtype);
  if (fusion.symbolic_sizes.contains(scalarSymbol(value.name))) out += "?";
  if (value.equals) out += " == " + value.equals->str();
  if (value.default_value) out += " = " + printScalar(*value.default_value);
  return out;
}

std::string printSignature(const Fusion& fusion) {
  auto print_input = [&](ValueId id) { return printInput(fusion, id); };
  std::string head = fmt::format("fusion {}(", printWord(fusion.name));
  std::string line = head + join(fusion.inputs(), print_input) + ")";
  if (line.size() + 2 > kColumns) {
    line = head + "\n    " + join(fusion.inputs(), print_input, ",\n    ") + ")";
  }
  if (fusion.size_defaults.empty()) return line + " {\n";
  return line + "\n    with " +
         join(fusion.size_defaults,
              [](const auto& entry) { return fmt::format("{} = {}", entry.first, entry.second); }) +
         " {\n";
}

std::string printOutput(const Fusion& fusion, size_t index) {
  const Value& value = fusion.value(fusion.outputs()[index]);
  const std::optional<AxisOrder>& order = fusion.outputOrders()[index];
  const std::optional<OutputReuse>& reuse = fusion.reuses()[index];
  std::string text = printValueName(value.name);
  if (order) text += " order=" + printInts(*order);
  if (!reuse) return text;
  return text + (reuse->required ? " in! " : " in ") +
         printValueName(fusion.value(reuse->input).name);
}

// Returns the version line and the meshes.
std::string headOf(const Fusion& fusion) {
  return fmt::format("{}\n{}", kVersionLine, printMeshes(fusion.meshes));
}

// Returns the guards that composite ops and passes have added to the fusion. `text` is the text of
// the fusion without guards. The function parses `text`, and returns the guards that the parsed
// fusion lacks.
std::vector<SizeGuard> addedGuards(const Fusion& fusion, const std::string& text) {
  std::vector<SizeGuard> added;
  if (fusion.guards.empty()) return added;
  TokenStream in(text, "");
  parseVersion(in);
  const Meshes meshes = parseMeshes(in);
  const Fusion parsed = parseFusionBody(in, meshes);
  for (const SizeGuard& guard : fusion.guards) {
    const auto is_same = [&](const SizeGuard& other) {
      return other.a == guard.a && other.b == guard.b && other.at_most == guard.at_most;
    };
    if (std::any_of(parsed.guards.begin(), parsed.guards.end(), is_same)) continue;
    if (std::any_of(added.begin(), added.end(), is_same)) continue;
    added.push_back(guard);
  }
  return added;
}

std::string printBody(const Fusion& fusion, const std::vector<SizeGuard>& guards) {
  std::string out = printSignature(fusion);
  for (const SizeGuard& guard : guards) {
    out += fmt::format("  guard {} {} {} {}\n", guard.a.str(),
                       guard.at_most ? "<=" : "==", guard.b.str(), heddle::quoted(guard.source));
  }
  for (const Expression& expr : fusion.exprs()) out += "  " + printExpression(fusion, expr) + "\n";
  std::string outputs;
  for (size_t i = 0; i < fusion.outputs().size(); ++i) {
    outputs += (i > 0 ? ", " : "") + printOutput(fusion, i);
  }
  return out + "  return " + outputs + "\n}\n";
}

}  // namespace

std::string printValueName(std::string_view name) {
  return "%" + (isWord(name, true) ? std::string(name) : heddle::quoted(name));
}

std::string printExpression(const Fusion& fusion, const Expression& expr) {
  std::string out =
      join(expr.outputs, [&](ValueId id) { return printValueName(fusion.value(id).name); });
  out += fmt::format(" = {}({})", expr.op->name, printArguments(fusion, expr));
  for (ValueId id : expr.outputs) {
    const Value& value = fusion.value(id);
    out += printSuffix(value.tensor, value.user_sharding, fusion.meshes);
  }
  return out;
}

std::string printMeshes(const Meshes& meshes) {
  std::string out;
  for (const DeviceMesh& mesh : meshes) out += "mesh " + mesh.str() + "\n";
  return out;
}

std::string printFusionBody(const Fusion& fusion) {
  std::string text = printBody(fusion, {});
  const std::vector<SizeGuard> added = addedGuards(fusion, headOf(fusion) + text);
  return added.empty() ? text : printBody(fusion, added);
}

std::string print(const Fusion& fusion) { return headOf(fusion) + printFusionBody(fusion); }

}  // namespace heddle
