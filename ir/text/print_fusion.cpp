#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ir/parse_common.h"
#include "ir/text.h"

namespace heddle {
namespace {

constexpr size_t kColumns = 100;

std::string printDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);  // the shortest that reads back exactly
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string printName(std::string_view name) {
  return isWord(name) ? std::string(name) : quoted(name);
}

// `x` or `x, y`, of anything a function prints.
template <class Items, class PrintItem>
std::string join(const Items& items, PrintItem print_item, std::string_view separator = ", ") {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    out += print_item(item);
  }
  return out;
}

struct AttrPrinter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::to_string(value); }
  std::string operator()(double value) const { return printDouble(value); }
  std::string operator()(const std::string& value) const { return printName(value); }
  std::string operator()(DType value) const { return std::string(name(value)); }
  std::string operator()(const std::vector<int64_t>& value) const { return printInts(value); }
  std::string operator()(const std::vector<Size>& value) const { return printSizes(value); }
};

// An optional flag that is off need not be said.
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
  if (value.default_value) out += " = " + printScalar(*value.default_value);
  return out;
}

std::string printSignature(const Fusion& fusion) {
  auto print_input = [&](ValueId id) { return printInput(fusion, id); };
  std::string head = fmt::format("fusion {}(", printName(fusion.name));
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

}  // namespace

std::string printScalar(const Scalar& scalar) { return std::visit(AttrPrinter(), scalar); }

std::string printAttr(const Attr& attr) { return std::visit(AttrPrinter(), attr); }

std::string printValueName(std::string_view name) {
  return "%" + (isWord(name, true) ? std::string(name) : quoted(name));
}

std::string printSizes(const std::vector<Size>& sizes) {
  return "[" + join(sizes, [](const Size& size) { return size.str(); }) + "]";
}

std::string printInts(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string printShape(const TensorView& tensor) {
  return std::string(name(tensor.dtype)) + "[" +
         join(tensor.domain,
              [](const IterDomain& axis) {
                std::string extent = axis.extent.str();
                return axis.kind == IterKind::Broadcast ? "broadcast(" + extent + ")" : extent;
              }) +
         "]";
}

std::string printSuffix(const TensorView& tensor, bool user_sharding,
                        const std::vector<DeviceMesh>& meshes) {
  std::string out;
  if (tensor.sharding) {
    auto mesh = static_cast<size_t>(tensor.sharding->mesh);
    HEDDLE_CHECK(mesh < meshes.size(), "a sharding is over mesh {} of {}", mesh, meshes.size());
    if (!user_sharding) out += " inferred";
    out += " " + tensor.sharding->str(meshes[mesh]);
  }
  const Layout& layout = tensor.layout;
  if (layout.observed) {
    out += " order=" + printInts(layout.observed->order) + " contiguous=[" +
           join(layout.observed->contiguous, [](bool b) { return b ? "true" : "false"; }) + "]";
  }
  if (layout.stride_order) out += " stride_order=" + printInts(*layout.stride_order);
  if (layout.allocation_order) out += " hint_order=" + printInts(*layout.allocation_order);
  return out;
}

std::string printTensorType(const TensorView& tensor, const std::vector<DeviceMesh>& meshes) {
  return printShape(tensor) + printSuffix(tensor, true, meshes);
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

std::string printMeshes(const std::vector<DeviceMesh>& meshes) {
  std::string out;
  for (const DeviceMesh& mesh : meshes) out += "mesh " + mesh.str() + "\n";
  return out;
}

std::string printFusionBody(const Fusion& fusion) {
  std::string out = printSignature(fusion);
  for (const Expression& expr : fusion.exprs()) out += "  " + printExpression(fusion, expr) + "\n";
  out += "  return " +
         join(fusion.outputs(), [&](ValueId id) { return printValueName(fusion.value(id).name); });
  return out + "\n}\n";
}

std::string print(const Fusion& fusion) {
  return fmt::format("{}\n{}{}", kVersionLine, printMeshes(fusion.meshes), printFusionBody(fusion));
}

}  // namespace heddle
