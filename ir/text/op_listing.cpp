#include "ir/text/op_listing.h"

#include <fmt/format.h>

#include <vector>

#include "ir/composite/table.h"
#include "ir/graph/print_values.h"
#include "ir/ops/op.h"
#include "ir/text/fusion_text.h"

namespace heddle {
namespace {

struct Listed {
  std::string name;
  std::string_view kind;
  std::string operands;
  std::string attrs;
  std::string types;
  std::string note;
};

std::string_view kindName(OpKind kind) {
  switch (kind) {
    case OpKind::Constant:
    case OpKind::SizeOf:
      return "scalar";
    case OpKind::Pointwise:
      return "elementwise";
    case OpKind::Reduction:
      return "reduction";
    case OpKind::Broadcast:
    case OpKind::Expand:
    case OpKind::Reshape:
    case OpKind::Permute:
    case OpKind::Slice:
    case OpKind::Set:
      return "shape";
    case OpKind::Full:
    case OpKind::Iota:
      return "new";
    case OpKind::Index:
    case OpKind::Scatter:
      return "index";
    case OpKind::Matmul:
      return "library";
    case OpKind::Scan:
      return "scan";
  }
  return {};
}

std::string_view typeName(AttrType type) {
  switch (type) {
    case AttrType::Bool:
      return "bool";
    case AttrType::Int:
      return "int";
    case AttrType::Float:
      return "number";
    case AttrType::Name:
      return "name";
    case AttrType::DType:
      return "dtype";
    case AttrType::Ints:
      return "[ints]";
    case AttrType::Sizes:
      return "[sizes]";
    case AttrType::Scalar:
      return "literal";
  }
  return {};
}

std::string attrsText(std::span<const AttrSpec> attrs) {
  std::vector<std::string> parts;
  for (const AttrSpec& attr : attrs) {
    std::string part = fmt::format("{}={}", attr.name, typeName(attr.type));
    parts.push_back(attr.required ? part : "[" + part + "]");
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, " "));
}

std::string operandsText(const OpDef& op) {
  std::vector<std::string> parts;
  const int required = op.arity - static_cast<int>(op.defaults.size());
  for (int i = 0; i < op.arity; ++i) {
    if (i < op.bool_operands) {
      parts.emplace_back("condition");
    } else if (i < required) {
      parts.emplace_back(1, static_cast<char>('a' + i));
    } else {
      const Scalar& value = op.defaults[static_cast<size_t>(i - required)];
      parts.push_back(fmt::format("[{}={}]", static_cast<char>('a' + i), printScalar(value)));
    }
  }
  for (int i = 0; i < op.optional_operands; ++i) {
    parts.push_back(fmt::format("[{}]", static_cast<char>('a' + op.arity + i)));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, " "));
}

std::string operandsText(const CompositeDef& op) {
  if (op.optional == CompositeDef::kAny) return fmt::format("{} or more", op.operands);
  if (op.optional > 0) return fmt::format("{} to {}", op.operands, op.operands + op.optional);
  return op.operands == 0 ? "-" : fmt::format("{}", op.operands);
}

std::string typesText(const OpDef& op) {
  if (op.kind != OpKind::Pointwise) return "all";
  std::string types;
  if (op.dtype_rule == DTypeRule::PromoteFloat) {
    types = "floats, others become f32";
  } else if (op.on_floats == nullptr) {
    types = op.takes_bools ? "integers, bool" : "integers";
  } else if (op.on_ints == nullptr) {
    types = "floats";
  } else {
    types = op.takes_bools ? "all" : "floats, integers";
  }
  if (op.dtype_rule == DTypeRule::Bool) types += "; gives bool";
  if (op.dtype_rule == DTypeRule::Wide) types += "; gives i64";
  return types;
}

std::vector<Listed> everyOp() {
  std::vector<Listed> all;
  for (const OpDef& op : opTable()) {
    all.push_back({std::string(op.name), kindName(op.kind), operandsText(op), attrsText(op.attrs),
                   typesText(op), std::string(op.note)});
  }
  for (const CompositeDef& op : compositeTable()) {
    all.push_back({std::string(op.name), "composite", operandsText(op), attrsText(op.attrs), "-",
                   std::string(op.summary)});
  }
  return all;
}

}  // namespace

std::string listOps() {
  const std::vector<Listed> all = everyOp();
  std::string text;
  for (const Listed& op : all) {
    text += fmt::format("{:<20} {:<12} {:<22} {:<36} {}\n", op.name, op.kind, op.operands, op.attrs,
                        op.kind == "composite" ? op.note : op.types);
  }
  return text;
}

std::string opsMarkdown() {
  const std::vector<Listed> all = everyOp();
  std::string text =
      "# The ops\n\n"
      "Made by `heddle ops --markdown` from the op table (`ir/op_rows_*.cpp`) and the table of\n"
      "composite ops; a test fails when this page is not current.\n\n"
      "Names and meaning are PyTorch's. The last column says what an op means beyond its name, "
      "and\n"
      "where it is not what PyTorch's does. For all ops: a float becomes an integer toward zero "
      "and\n"
      "saturates, and NaN becomes 0; an integer divided by 0 gives 0 and leaves 0; integers wrap;\n"
      "sums of integers and bools are i64; `f16` and `bf16` compute in f32 and are rounded at "
      "every\n"
      "op; an elementwise op whose types say that others become f32, and `logsumexp`, take "
      "integers\n"
      "and bools as f32, also where PyTorch refuses them, and other functions of reals refuse "
      "them; a\n"
      "tensor without axes that does not widen the type of those with axes is rounded to it first\n"
      "(PyTorch's `mul` and `div` take it in f32 beside half types, on the CPU). In brackets "
      "stands\n"
      "what may be left out.\n"
      "\n"
      "Axes: a negative one counts from the end; a reduction without `axes`, or with an empty\n"
      "list, is over all of them; a tensor without axes is to an op along an axis a line of one\n"
      "element, whose axis is 0 or -1, but to `size`, `select`, `slice_axis`, `chunk`, `cat` and\n"
      "`glu`, which refuse it as PyTorch does. Shapes never depend on values. A composite op of\n"
      "half types computes in f32 from its first op to its last and rounds each result once.\n"
      "\n"
      "`f8e4m3` and `f8e5m2` are stored, moved, cast and multiplied: other ops refuse them, "
      "whatever "
      "the column of\n"
      "types says; what is beyond `f8e4m3`, infinities too, becomes 448 or -448. `u8` with `i8` "
      "gives i32,\n"
      "as there is no i16.\n"
      "\n"
      "Integers beside a half type are rounded to it first. A literal or scalar beside a half type "
      "is\n"
      "taken as f32, but in a comparison it is rounded to the half type; PyTorch on the CPU also "
      "rounds\n"
      "it in `add`, `sub`, `fmod`, `remainder` and `pow`. Beside `u8`, `i8` and `i32` a literal "
      "wraps in\n"
      "sums, products and bits; where it is compared, divides, shifts or is chosen (`where`, "
      "`threshold`)\n"
      "one that the type does not hold is refused (PyTorch wraps it, but refuses what is far "
      "beyond),\n"
      "and a scalar that is no literal wraps; a bound of `clamp`, `maximum` and their like may be "
      "beyond\n"
      "the type where it bounds nothing, else it is refused.\n"
      "\n"
      "Whole lines (`cumsum`, `argsort`, and `sort` and `topk` made of it) and `scatter`\n"
      "are heddle's own library functions on every device; products are OpenBLAS's and "
      "cuBLASLt's, those\n"
      "of integers heddle's own.\n";
  for (std::string_view kind : {"elementwise", "reduction", "scalar", "new", "shape", "index",
                                "scan", "library", "composite"}) {
    bool any = false;
    for (const Listed& op : all) {
      if (op.kind != kind) continue;
      if (!std::exchange(any, true)) {
        text += fmt::format(
            "\n## {}\n\n| op | operands | attributes | types | notes |\n"
            "| --- | --- | --- | --- | --- |\n",
            kind);
      }
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", op.name, op.operands, op.attrs,
                          op.types, op.note);
    }
  }
  return text;
}

}  // namespace heddle
