#include "ir/graph/print_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ir/base/check.h"
#include "ir/base/lexer.h"
#include "ir/base/print_list.h"

namespace heddle {
namespace {

std::string printDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);  // the shortest text that parses to the same value
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct AttrPrinter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::to_string(value); }
  std::string operator()(double value) const { return printDouble(value); }
  std::string operator()(const std::string& value) const { return printWord(value); }
  std::string operator()(DType value) const { return std::string(name(value)); }
  std::string operator()(const std::vector<int64_t>& value) const { return printInts(value); }
  std::string operator()(const std::vector<Size>& value) const { return printSizes(value); }
};

}  // namespace

std::string printWord(std::string_view name) {
  return isWord(name) ? std::string(name) : quoted(name);
}

std::string printScalar(const Scalar& scalar) { return std::visit(AttrPrinter(), scalar); }

std::string printAttr(const Attr& attr) { return std::visit(AttrPrinter(), attr); }

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
                if (axis.kind == IterKind::Symbolic && axis.extent.kind() == Size::Kind::Symbol) {
                  return extent + "?";
                }
                return axis.kind == IterKind::Broadcast ? "broadcast(" + extent + ")" : extent;
              }) +
         "]";
}

std::string printSuffix(const TensorView& tensor, bool user_sharding, const Meshes& meshes) {
  std::string out;
  if (tensor.sharding) {
    const MeshId mesh = tensor.sharding->mesh;
    HEDDLE_CHECK(meshes.has(mesh), "a sharding is over mesh {}, there are {} mesh(es)", mesh,
                 meshes.size());
    if (!user_sharding) out += " inferred";
    out += " " + tensor.sharding->str(meshes[mesh]);
  }
  const Layout& layout = tensor.layout;
  if (layout.observed) {
    out += " order=" + printInts(layout.observed->order) + " contiguous=[" +
           join(layout.observed->contiguous, [](bool b) { return b ? "true" : "false"; }) + "]";
  }
  if (layout.required) out += " order=" + printInts(*layout.required);
  if (layout.needed) out += " needed order=" + printInts(*layout.needed);
  if (layout.hint) out += " hinted order=" + printInts(*layout.hint);
  return out;
}

std::string printTensorType(const TensorView& tensor, const Meshes& meshes) {
  return printShape(tensor) + printSuffix(tensor, true, meshes);
}

}  // namespace heddle
