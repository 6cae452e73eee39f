#include "ir/text/op_listing.h"

#include <fmt/format.h>

#include <vector>

#include "ir/base/check.h"
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
    case OpKind::Diagonal:
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
    case AttrType::Size:
      return "size";
    case AttrType::Number:
      return "number or size";
    case AttrType::Literal:
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
      const Scalar& value = op.defaults[i - required];
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

// One string literal contains the prose of the page, so that the source reads like the page. After
// the prose, the page has one table per kind of op.
std::string opsMarkdown() {
  const std::vector<Listed> all = everyOp();
  std::string text = R"(# The ops

`heddle ops --markdown` generates this page from the op table (`ir/ops/rows_*.cpp`) and the table of
composite ops (`ir/composite/rows_*.cpp`). A test fails if the page is out of date.

Names and meanings are PyTorch's. The last column states what the name of an op does not say, and
where the op differs from PyTorch's. Operands and attributes in brackets are optional.

The table of composite ops gives the number of operands. In its last column, a value in parentheses
is the default of an attribute: `an axis (0)` means `axis=0`. A type in parentheses is the default
of the attribute `dtype`, or the type of the result if the op has no such attribute. A list of names
in parentheses gives the operands in order.

## Rules for all ops

**Axes**

- A negative axis counts from the end.
- A reduction without `axes`, or with an empty list, covers all axes. Exception: with an empty
  list, `any` and `all` test each element by itself.
- An op along an axis treats a tensor without axes as a line of one element, whose axis is 0 or -1.
  `size`, `select`, `slice_axis`, `chunk`, `cat` and `glu` refuse it, as PyTorch does.
- Shapes never depend on the elements of tensors, only on sizes and integer scalars.

**Numbers**

- From float to integer, a number is truncated toward zero and saturates; NaN becomes 0.
- Integers wrap. An integer divided by 0 gives 0, with remainder 0.
- Sums of integers and bools have the type i64.
- `f16` and `bf16` compute in f32, and every op rounds its result. A composite op computes in f32
  from its first op to its last, and rounds each result once.
- Casts, data movement and matrix products accept `f8e4m3` and `f8e5m2`. Other ops refuse them,
  even if the column of types says `all` or `floats`. Numbers beyond the range of `f8e4m3`, also
  infinities, become 448 or -448.

**Types**

- Elementwise ops with the types "floats, others become f32", and `logsumexp`, convert integers and
  bools to f32, also where PyTorch refuses them. Other functions of real numbers, such as `softmax`,
  refuse them.
- `u8` with `i8` gives i32, because heddle has no i16.
- A tensor without axes may have a wider type than the tensors with axes. If both types are of one
  category (bool, integer, float), the tensor without axes is first rounded to the other type. On
  the CPU, PyTorch's `mul` and `div` use the f32 value of a tensor without axes, if the tensors with
  axes have a half type. (The half types are `f16` and `bf16`.)
- If an op has a tensor of a half type and an integer tensor, the integer tensor is first rounded to
  the half type.

**Literals and scalars**

- If the tensors of an op have a half type, the op uses a scalar in f32. Only comparisons round the
  scalar to the half type. On the CPU, PyTorch also rounds it in `add`, `sub`, `fmod`, `remainder`
  and `pow`.
- If the tensors have the type `u8`, `i8` or `i32`, a literal may be out of the range of this type.
  In sums, products and bit operations, it wraps. In ops that compare with it, divide or shift by
  it, or select it (`where`, `threshold`), it is an error. PyTorch wraps such a literal, but refuses
  numbers far out of range. A scalar that is not a literal wraps in these ops too.
- In `clamp`, `maximum` and similar ops, a literal lower bound may be below the range of the type,
  and a literal upper bound above it, because such a bound has no effect. Any other literal bound
  out of range is an error.

**Libraries.** `cumsum`, `argsort`, `scatter` and `scatter_add`, and composites of them such as
`sort` and `topk`, are heddle's own library functions on every device. oneDNN, OpenBLAS and
cuBLASLt compute matrix products; heddle itself computes those of integers. On the CPU, OpenBLAS
multiplies f64. oneDNN multiplies all other floats if it is present, and otherwise OpenBLAS does.
oneDNN adds products of bf16 in f32, and treats subnormal bf16 elements as 0. Before f16 and f8 are
multiplied, the CPU device converts blocks of elements to f32, and uses up to 48 MiB of memory for
them. Without oneDNN, or if the CPU has no bf16 instructions, it also converts blocks of bf16.
)";
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
