#include "codegen/emit/kernel_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "codegen/emit/accumulator_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {

void TextWriter::line(std::string_view text) {
  if (!text.empty()) text_.append(static_cast<size_t>(depth_) * 2, ' ');
  text_ += text;
  text_ += '\n';
}

void TextWriter::open(std::string_view text) {
  line(text);
  ++depth_;
}

void TextWriter::close(std::string_view text) {
  --depth_;
  line(text);
}

std::string_view storedType(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "hd::Bool";
    case DType::U8:
      return "hd::UInt8";
    case DType::I8:
      return "hd::Int8";
    case DType::I32:
      return "hd::Int32";
    case DType::I64:
      return "long long";
    case DType::F8E4M3:
      return "hd::Float8E4M3";
    case DType::F8E5M2:
      return "hd::Float8E5M2";
    case DType::F16:
      return "hd::Half";
    case DType::BF16:
      return "hd::BFloat16";
    case DType::F32:
      return "float";
    case DType::F64:
      return "double";
  }
  return {};
}

std::string_view valueType(DType dtype) {
  switch (computeType(dtype)) {
    case DType::Bool:
      return "bool";
    case DType::I64:
      return "long long";
    case DType::F32:
      return "float";
    case DType::F64:
      return "double";
    default:
      HEDDLE_CHECK(false, "a kernel cannot compute in the type {}", name(computeType(dtype)));
  }
}

namespace {

std::string floatText(double value, bool wide) {
  if (std::isnan(value)) return wide ? "hd::nanF64()" : "hd::nanF32()";
  if (std::isinf(value)) {
    return std::string(value < 0 ? "(-" : "(") + (wide ? "hd::infF64())" : "hd::infF32())");
  }
  char hex[64];
  std::snprintf(hex, sizeof(hex), "%a", value);
  return fmt::format("({}{})", hex, wide ? "" : "f");
}

}  // namespace

std::string literalText(const Scalar& value, DType dtype) {
  Scalar rounded = roundTo(dtype, value);
  if (isFloat(dtype)) return floatText(toDouble(rounded), dtype == DType::F64);
  if (dtype == DType::Bool) return toInt(rounded) != 0 ? "true" : "false";
  int64_t v = toInt(rounded);
  return v == INT64_MIN ? "(-9223372036854775807LL - 1)" : fmt::format("({}LL)", v);
}

namespace {

// The functions that convert a value to a dtype. `round` is for example `hd::roundF16` or
// `hd::wrapI8`. `saturate` converts a float to an integer dtype, and is empty for float dtypes.
struct Rounding {
  std::string_view round;
  std::string_view saturate;
};
Rounding roundingOf(DType dtype) {
  switch (dtype) {
    case DType::U8:
      return {"hd::wrapU8", "hd::saturateU8"};
    case DType::I8:
      return {"hd::wrapI8", "hd::saturateI8"};
    case DType::I32:
      return {"hd::wrapI32", "hd::saturateI32"};
    case DType::I64:
      return {"(long long)", "hd::saturateI64"};
    case DType::F8E4M3:
      return {"hd::roundF8E4M3", {}};
    case DType::F8E5M2:
      return {"hd::roundF8E5M2", {}};
    case DType::F16:
      return {"hd::roundF16", {}};
    case DType::BF16:
      return {"hd::roundBf16", {}};
    case DType::F32:
      return {"(float)", {}};
    case DType::F64:
      return {"(double)", {}};
    case DType::Bool:
      break;
  }
  HEDDLE_CHECK(false, "no function of the runtime rounds to {}", name(dtype));
}

}  // namespace

std::string convertText(const std::string& text, DType from, DType to) {
  if (from == to || (valueType(from) == valueType(to) && computeType(to) == to)) return text;
  if (to == DType::Bool) return fmt::format("({} != 0)", text);
  const Rounding rounding = roundingOf(to);
  const bool saturates = isFloat(from) && !rounding.saturate.empty();
  return fmt::format("{}({})", saturates ? rounding.saturate : rounding.round, text);
}

std::string applyText(std::string_view text, const std::string& a, const std::string& b,
                      const std::string& c, const std::string& d) {
  return fmt::format(fmt::runtime(text), a, b, c, d);
}

namespace {

std::string nodeText(TextWriter& out, const Body& body, NodeId id, const KernelFrame& frame,
                     const LeafText& leaves, const std::string& prefix, bool is_rounded_at_store) {
  const Node& node = body.nodes[id];
  const std::string window = leaves.window ? leaves.window(id) : "";
  if (!window.empty()) return fmt::format("hd::get({}[{}])", window, leaves.lane);
  switch (node.kind) {
    case Node::Kind::Load:
      return fmt::format("hd::get({})", leaves.element(node.index));
    case Node::Kind::Scalar: {
      DType given = node.dtype == DType::Bool ? DType::Bool
                    : isFloat(node.dtype)     ? DType::F64
                                              : DType::I64;
      return convertText(fmt::format("scalar{}", node.index), given, node.dtype);
    }
    case Node::Kind::Literal:
      return literalText(node.literal, node.dtype);
    case Node::Kind::Result: {
      const AccumulatorId id(node.index);
      const Accumulator& a = frame.accumulators[id];
      const std::string center =
          node.operands.empty() ? "" : fmt::format("{}{}", prefix, node.operands[0]);
      const AccumulatorId with_state = a.hasState() ? id : a.first;
      std::string text = resultText(a, leaves.result(with_state), center);
      if (a.average) text = fmt::format("({} / ({})reduced_count)", text, valueType(a.type));
      return convertText(text, a.type, node.dtype);
    }
    case Node::Kind::Apply: {
      std::string operands[kMaxOperands];
      const size_t count = node.operands.size() + (node.state.empty() ? 0 : 1);
      HEDDLE_CHECK(count <= kMaxOperands, "an op has {} operands, at most {} are possible", count,
                   kMaxOperands);
      for (size_t i = 0; i < node.operands.size(); ++i) {
        const Node& from = body.nodes[node.operands[i]];
        bool condition = static_cast<int>(i) < node.conditions;
        operands[i] = convertText(fmt::format("{}{}", prefix, node.operands[i]), from.dtype,
                                  condition ? DType::Bool : node.compute);
      }
      if (!node.state.empty()) operands[node.operands.size()] = stateName(prefix, id);
      std::string text = applyText(node.text, operands[0], operands[1], operands[2], operands[3]);
      // A comparison gives a bool, but an op on bools may give an int. The cast is correct for
      // both.
      if (node.dtype == DType::Bool) return fmt::format("(bool)({})", text);
      if (is_rounded_at_store) {
        const std::string exact = fmt::format("{}{}_exact", prefix, id);
        out.line(fmt::format("const float {} = {};", exact, text));
        text = exact;
      }
      return convertText(text, node.compute, node.dtype);
    }
    case Node::Kind::Coordinate:
      return globalIndexText(frame, CoordinateId(node.index), leaves.lane);
    case Node::Kind::LoadAt:
      return loadAtText(out, body, id, frame, leaves, prefix);
  }
  return {};
}

}  // namespace

std::string stateName(const std::string& prefix, NodeId node) {
  return fmt::format("state_{}{}", prefix, node);
}

void writeStates(TextWriter& out, const Body& body, const std::string& prefix) {
  for (NodeId id : body.nodes.ids()) {
    if (body.nodes[id].state.empty()) continue;
    out.line(fmt::format("{} {};", body.nodes[id].state, stateName(prefix, id)));
  }
}

void writeNodes(TextWriter& out, const Body& body, const KernelFrame& frame, const LeafText& leaves,
                const std::string& prefix, const IdVector<NodeId, bool>* wanted) {
  IdVector<NodeId, bool> rounded(body.nodes.size(), false);
  for (const Store& store : body.stores) {
    if (leaves.rounds_at_stores && roundsWhenStored(body, store, frame)) {
      rounded[store.node] = true;
    }
  }
  for (NodeId id : body.nodes.ids()) {
    if (wanted != nullptr && !(*wanted)[id]) continue;
    const std::string value = nodeText(out, body, id, frame, leaves, prefix, rounded[id]);
    out.line(
        fmt::format("const {} {}{} = {};", valueType(body.nodes[id].dtype), prefix, id, value));
  }
}

bool roundsWhenStored(const Body& body, const Store& store, const KernelFrame& frame) {
  const Access& access = frame.access(store.tensor);
  const Node& node = body.nodes[store.node];
  const bool is_half = access.dtype == DType::BF16 || access.dtype == DType::F16;
  // A choice (an op with a condition) selects a value that is already rounded. The choice may also
  // be a window, which has no float to round.
  const bool computes = node.kind == Node::Kind::Apply && node.conditions == 0;
  return is_half && access.lane == LaneStride::One && computes && node.dtype == access.dtype;
}

std::string exactText(const Store& store, const std::string& prefix) {
  return fmt::format("{}{}_exact", prefix, store.node);
}

std::string storedText(const Body& body, NodeId node, DType dtype, const std::string& prefix) {
  const Node& from = body.nodes[node];
  std::string value = convertText(fmt::format("{}{}", prefix, node), from.dtype, dtype);
  return fmt::format("hd::put<{}>({})", storedType(dtype), value);
}

int tensorOf(const std::vector<LoadTile>& loads, int tile) {
  const auto load = std::ranges::find(loads, TileId(tile), &LoadTile::tile);
  HEDDLE_CHECK(load != loads.end(), "no load reads tile {}", tile);
  return load->tensor;
}

std::vector<int> tensorsOf(const Body& body, const std::vector<LoadTile>& loads) {
  std::set<int> tensors;
  for (const LoadTile& load : loads) tensors.insert(load.tensor);
  for (const Store& store : body.stores) tensors.insert(store.tensor);
  return {tensors.begin(), tensors.end()};
}

void writeLanePragma(TextWriter& out, const IdVector<AccumulatorId, Accumulator>& accumulators,
                     int32_t lanes) {
  constexpr int32_t kMostUnrolled = 16;
  const bool calls = std::any_of(accumulators.begin(), accumulators.end(), [](const auto& a) {
    return a.text.find("hd::") != std::string_view::npos;
  });
  if (calls && lanes <= kMostUnrolled) out.line("#pragma GCC unroll 1");
}

void openCudaEntry(TextWriter& out, const std::string& entry, const std::string& bounds,
                   int32_t cluster) {
  std::string clusters;
  if (cluster > 1) {
    clusters = fmt::format("__cluster_dims__({}) ", cluster);
    // Older GPUs would ignore the attribute.
    out.line("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900");
    out.line("#error \"clusters need compute capability 9.0\"");
    out.line("#endif");
  }
  out.open(
      fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}) {}(const "
                  "__grid_constant__ Args_{} args) {{",
                  clusters, bounds, entry, entry));
  out.line("hd::awaitEarlierWork();");
}

void writeArguments(TextWriter& out, const KernelFrame& frame) {
  for (const Access& access : frame.accesses) {
    std::string type = (access.output ? "" : "const ") + std::string(storedType(access.dtype));
    out.line(fmt::format("{0}* const {1} = ({0}*)args.{1};", type, access.name));
  }
  for (const IndexedAccess& access : frame.indexed) {
    out.line(fmt::format("const {0}* const {1} = (const {0}*)args.{1};", storedType(access.dtype),
                         access.name));
  }
  for (const ArgumentLayout::Field& field : frame.args.fields()) {
    if (field.type == "void*") continue;
    if (field.divisor && !frame.wide_index) {
      out.line(fmt::format("const hd::Divisor {0}((int)args.{0}, args.{0}_inverse);", field.name));
      continue;
    }
    std::string type = field.index ? "Index" : field.type;
    out.line(fmt::format("[[maybe_unused]] const {0} {1} = ({0})args.{1};", type, field.name));
  }
}

std::string cppElement(const KernelFrame& frame, int tensor) {
  const Access& access = frame.access(tensor);
  switch (access.lane) {
    case LaneStride::Zero:
      return fmt::format("p{}[0]", tensor);
    case LaneStride::One:
      return fmt::format("p{}[i]", tensor);
    case LaneStride::Any:
      return fmt::format("p{}[i * {}]", tensor, access.lane_stride.str());
  }
  return {};
}

void openCppEntry(TextWriter& out, const KernelFrame& frame) {
  out.open(fmt::format(
      "extern \"C\" void {}(const void* raw, long long tile_begin, long long tile_end) {{",
      frame.entry));
  out.line("typedef long long Index;");
  out.line(fmt::format("const Args_{0}& args = *(const Args_{0}*)raw;", frame.entry));
  writeArguments(out, frame);
}

void writeCoordinates(TextWriter& out, const std::vector<Coordinate>& coordinates) {
  for (const Coordinate& c : coordinates) {
    out.line(fmt::format("[[maybe_unused]] const Index {} = {};", c.name, c.value.str()));
  }
}

}  // namespace heddle::codegen
