#include <algorithm>
#include <set>

#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/passes/orders/order_notes.h"
#include "ir/passes/sharding/reshard_moves.h"
#include "ir/segment/library_calls.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"

namespace heddle {
namespace {

std::string label(size_t group) { return fmt::format("g{}", group); }

// Prints the text form of the fusion. Each line with an expression starts with its group, or with
// [host] or [unused] if it has none.
class Listing {
 public:
  explicit Listing(const SegmentedFusion& segmented) : segmented_(segmented) {
    width_ = label(segmented.groups.size()).size() + 2;
  }

  std::string str() {
    std::string body = printFusionBody(segmented_.fusion);
    std::string out = printMeshes(segmented_.fusion.meshes);
    if (!out.empty() && out.back() != '\n') out += '\n';
    bool inside = false;
    for (size_t begin = 0; begin < body.size();) {
      size_t end = std::min(body.find('\n', begin), body.size());
      std::string line = body.substr(begin, end - begin);
      out += inside ? bracketed(line) : line + '\n';
      inside = inside || line.ends_with('{');
      begin = end + 1;
    }
    return out;
  }

 private:
  std::string bracketed(const std::string& line) {
    size_t text = line.find_first_not_of(' ');
    if (text == std::string::npos || line[text] != '%') return line + '\n';
    const ExprId id(next_++);
    const int group = segmented_.group_of.at(id);
    const bool host = isHostScalar(segmented_.fusion, segmented_.fusion.expr(id));
    std::string bracket = group >= 0 ? fmt::format("[{}]", label(static_cast<size_t>(group)))
                          : host     ? "[host]"
                                     : "[unused]";
    return fmt::format("  {:<{}} {}\n", bracket, std::max<size_t>(width_, 6), line.substr(text));
  }

  const SegmentedFusion& segmented_;
  size_t width_;
  size_t next_ = 0;  // index of the next expression
};

bool hasReduction(const SegmentedFusion& segmented, const Group& group) {
  return std::any_of(group.exprs.begin(), group.exprs.end(), [&](ExprId id) {
    return segmented.fusion.expr(id).op->kind == OpKind::Reduction;
  });
}

// Describes how CUDA computes a matrix product that is not always one call of cuBLASLt
// (host/device/fallback_matmul.h). Returns "" for all other matrix products.
std::string_view productOnCuda(const Fusion& fusion, const Expression& expr) {
  if (expr.op->kind != OpKind::Matmul) return "";
  const DType dtype = fusion.tensor(expr.inputs[0]).dtype;
  const bool float8 = isFloat8(dtype);
  const bool library8 =
      !isFloat8(fusion.tensor(expr.outputs[0]).dtype) &&
      (dtype == DType::F8E4M3 || fusion.tensor(expr.inputs[1]).dtype == DType::F8E4M3);
  if (!isFloat(dtype) || (float8 && !library8)) return "; on CUDA heddle's own kernel";
  if (float8) {
    return "; on CUDA cuBLASLt from sm_89 on if k and n are multiples of 16, else heddle's own "
           "kernel";
  }
  const Attr* activation = expr.find("activation");
  const bool gelu = activation != nullptr && std::get<std::string>(*activation) == "gelu_tanh";
  return gelu && dtype == DType::F64 ? "; on CUDA gelu by a separate kernel" : "";
}

std::string describeAttention(const Attention& attention) {
  const std::string scale =
      attention.scale ? fmt::format(", scale {}", *attention.scale) : std::string();
  return fmt::format("library, cudnn attention{}{}{}{}", attention.backward ? " backward" : "",
                     attention.causal ? ", causal" : "", scale, attention.gqa ? ", gqa" : "");
}

std::string describeCat(const Fusion& fusion, const Cat& cat) {
  std::string copied;
  for (const Cat::Piece& piece : cat.pieces) {
    if (piece.why_copied.empty()) continue;
    copied += fmt::format("; copies %{}: {}", fusion.value(piece.value).name, piece.why_copied);
  }
  return fmt::format("cat ({} pieces along axis {}{})", cat.pieces.size(), cat.axis, copied);
}

// Returns "kernel (reduction over [0, 1] of %x, 5 expressions)", "library (matmul)", ...
std::string describe(const SegmentedFusion& segmented, const Group& group) {
  if (group.attention) return describeAttention(*group.attention);
  if (group.cat) return describeCat(segmented.fusion, *group.cat);
  std::string kind(name(group.kind));
  if (group.kind != GroupKind::Kernel) {
    const Expression& first = segmented.fusion.expr(group.exprs.front());
    return fmt::format("{} ({}{})", kind, first.op->name, productOnCuda(segmented.fusion, first));
  }
  if (!group.parts.empty()) {
    return fmt::format("{} (pointwise, {} parts, {} expressions)", kind, group.parts.size(),
                       group.exprs.size());
  }
  if (!hasReduction(segmented, group)) {
    return fmt::format("{} (pointwise, {} expressions)", kind, group.exprs.size());
  }
  for (ExprId id : group.exprs) {
    const Expression& expr = segmented.fusion.expr(id);
    if (expr.op->kind != OpKind::Reduction) continue;
    return fmt::format("{} (reduction over {} of %{}, {} expressions)", kind,
                       str(expr.attr<std::vector<int64_t>>("axes")),
                       segmented.fusion.value(expr.inputs[0]).name, group.exprs.size());
  }
  return kind;
}

// Returns the reasons why a group was not merged with other groups, each once.
std::vector<std::string> cutTexts(const SegmentedFusion& segmented, const Group& group) {
  std::vector<std::string> texts;
  for (const Cut& cut : group.cuts) {
    std::string text = cut.why;
    if (cut.other != kNoExpr) {
      const std::string other = label(static_cast<size_t>(segmented.group_of.at(cut.other)));
      text = cut.value == kNoValue
                 ? fmt::format("no launch with {}: {}", other, cut.why)
                 : fmt::format("%{} feeds {}: {}", segmented.fusion.value(cut.value).name, other,
                               cut.why);
    }
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  return texts;
}

std::string typed(const Fusion& fusion, ValueId id) {
  const Value& value = fusion.value(id);
  if (value.is_scalar) return fmt::format("%{}: {}", value.name, name(value.tensor.dtype));
  return fmt::format("%{}: {}", value.name, printTensorType(value.tensor, fusion.meshes));
}

std::string typedList(const Fusion& fusion, const std::vector<ValueId>& ids) {
  std::string out;
  for (ValueId id : ids) out += (out.empty() ? "" : ", ") + typed(fusion, id);
  return out.empty() ? "nothing" : out;
}

// Returns a text as a string literal with escapes that both JSON and Graphviz accept. Control
// characters become \u00XX.
std::string quotedText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string quotedList(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + quotedText(text);
  return "[" + out + "]";
}

std::vector<std::string> names(const Fusion& fusion, const std::vector<ValueId>& ids) {
  std::vector<std::string> result;
  for (ValueId id : ids) result.push_back(fusion.value(id).name);
  return result;
}

std::string valuesJson(const Fusion& fusion, const std::vector<ValueId>& ids) {
  std::string out;
  for (ValueId id : ids) {
    const Value& value = fusion.value(id);
    std::string type = value.is_scalar ? std::string(name(value.tensor.dtype))
                                       : printTensorType(value.tensor, fusion.meshes);
    out += fmt::format("{}{{\"name\": {}, \"type\": {}}}", out.empty() ? "" : ", ",
                       quotedText(value.name), quotedText(type));
  }
  return "[" + out + "]";
}

std::string exprsJson(const SegmentedFusion& segmented) {
  const Fusion& fusion = segmented.fusion;
  std::string out;
  for (ExprId id : fusion.exprs().ids()) {
    const Expression& expr = fusion.expr(id);
    int group = segmented.group_of[id];
    out += fmt::format(
        "{}\n    {{\"text\": {}, \"op\": {}, \"inputs\": {}, \"outputs\": {}, "
        "\"line\": {}, \"group\": {}}}",
        out.empty() ? "" : ",", quotedText(printExpression(fusion, expr)),
        quotedText(expr.op->name), quotedList(names(fusion, expr.inputs)),
        quotedList(names(fusion, expr.outputs)), expr.line,
        group < 0 ? "null" : std::to_string(group));
  }
  return out;
}

std::string groupsJson(const SegmentedFusion& segmented) {
  std::string out;
  for (size_t g = 0; g < segmented.groups.size(); ++g) {
    const Group& group = segmented.groups[g];
    out += fmt::format(
        "{}\n    {{\"index\": {}, \"kind\": {}, \"exprs\": [{}], \"inputs\": {}, "
        "\"outputs\": {}, \"joins\": {}, \"cuts\": {}}}",
        g == 0 ? "" : ",", g, quotedText(name(group.kind)), fmt::join(group.exprs, ", "),
        valuesJson(segmented.fusion, group.inputs), valuesJson(segmented.fusion, group.outputs),
        quotedList(group.joins), quotedList(cutTexts(segmented, group)));
  }
  return out;
}

// Returns the values that any group writes or reads, in the order of the fusion.
std::vector<ValueId> boundariesOf(const SegmentedFusion& segmented) {
  std::set<ValueId> ids;
  for (const Group& group : segmented.groups) {
    ids.insert(group.inputs.begin(), group.inputs.end());
    ids.insert(group.outputs.begin(), group.outputs.end());
  }
  return {ids.begin(), ids.end()};
}

std::string ordersJson(const SegmentedFusion& segmented) {
  std::string out;
  for (const ValueOrder& each : ordersOf(segmented.fusion, boundariesOf(segmented))) {
    out += fmt::format(
        "{}\n    {{\"value\": {}, \"order\": {}, \"kind\": \"{}\", \"from\": {}, \"undone\": {}}}",
        out.empty() ? "" : ",", quotedText(each.value), str(each.order), name(each.kind),
        quotedText(each.from), each.undone.empty() ? "null" : quotedText(each.undone));
  }
  return out.empty() ? "[]" : "[" + out + "\n  ]";
}

}  // namespace

std::string dumpText(const SegmentedFusion& segmented) {
  std::string out = Listing(segmented).str();
  for (size_t g = 0; g < segmented.groups.size(); ++g) {
    const Group& group = segmented.groups[g];
    out += fmt::format("\n{}: {}\n  reads  {}\n  writes {}\n", label(g), describe(segmented, group),
                       typedList(segmented.fusion, group.inputs),
                       typedList(segmented.fusion, group.outputs));
    if (group.attention) {
      const std::string reuse = describeReuse(segmented.fusion, *group.attention);
      if (!reuse.empty()) out += "  " + reuse + '\n';
    }
    for (const std::string& join : group.joins) out += "  joined: " + join + '\n';
    for (const std::string& cut : cutTexts(segmented, group)) out += "  split: " + cut + '\n';
  }
  if (!segmented.notes.empty()) out += '\n';
  for (const std::string& note : segmented.notes) out += note + '\n';
  const std::string orders = dumpOrders(segmented.fusion, boundariesOf(segmented));
  if (!orders.empty()) out += "\nmemory orders of stored values:\n" + orders;
  const std::string moves = dumpResharding(segmented.fusion);
  if (!moves.empty()) out += "\nresharding, with the bytes that one device sends:\n" + moves;
  return out;
}

// Prints the vertices first: the expressions of each group, all other expressions, and the inputs.
// Then it prints the edges, and the outputs with the edges to them.
std::string dumpDot(const SegmentedFusion& segmented) {
  const Fusion& fusion = segmented.fusion;
  std::string out = fmt::format("digraph {} {{\n  node [shape=box, fontname=monospace];\n",
                                quotedText(fusion.name));
  for (size_t g = 0; g < segmented.groups.size(); ++g) {
    const Group& group = segmented.groups[g];
    out += fmt::format("  subgraph cluster_{} {{\n    label={};\n", g,
                       quotedText(label(g) + ": " + describe(segmented, group)));
    for (ExprId id : group.exprs) {
      out += fmt::format("    e{} [label={}];\n", id,
                         quotedText(printExpression(fusion, fusion.expr(id))));
    }
    out += "  }\n";
  }
  for (ExprId id : fusion.exprs().ids()) {
    if (segmented.group_of[id] >= 0) continue;
    out += fmt::format("  e{} [style=dashed, label={}];\n", id,
                       quotedText(printExpression(fusion, fusion.expr(id))));
  }
  for (ValueId input : fusion.inputs()) {
    out +=
        fmt::format("  v{} [shape=ellipse, label={}];\n", input, quotedText(typed(fusion, input)));
  }
  for (ExprId id : fusion.exprs().ids()) {
    for (ValueId input : fusion.expr(id).inputs) {
      ExprId from = fusion.value(input).definition;
      std::string source = from == kNoExpr ? fmt::format("v{}", input) : fmt::format("e{}", from);
      out += fmt::format("  {} -> e{};\n", source, id);
    }
  }
  for (ValueId output : fusion.outputs()) {
    ExprId from = fusion.value(output).definition;
    if (from == kNoExpr) continue;
    out += fmt::format("  e{} -> out{} [label={}];\n  out{} [shape=ellipse, label=output];\n", from,
                       output, quotedText(typed(fusion, output)), output);
  }
  return out + "}\n";
}

std::string dumpJson(const SegmentedFusion& segmented) {
  const Fusion& fusion = segmented.fusion;
  return fmt::format(
      "{{\n  \"fusion\": {},\n  \"inputs\": {},\n  \"outputs\": {},\n  \"exprs\": [{}\n  ],\n"
      "  \"groups\": [{}\n  ],\n  \"orders\": {}\n}}\n",
      quotedText(fusion.name), valuesJson(fusion, fusion.inputs()),
      valuesJson(fusion, fusion.outputs()), exprsJson(segmented), groupsJson(segmented),
      ordersJson(segmented));
}

}  // namespace heddle
