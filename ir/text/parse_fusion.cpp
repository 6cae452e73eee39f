#include <algorithm>
#include <set>
#include <type_traits>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/base/unique_names.h"
#include "ir/graph/builder.h"
#include "ir/graph/print_values.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"
#include "ir/text/op_call.h"
#include "ir/text/text_pieces.h"

namespace heddle {
namespace {

// Returns whether the builder accepts the name of a value: letters, digits, `_` and dots.
bool canName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '.' || isWord(std::string("_") + c);
  });
}

class FusionParser {
 public:
  FusionParser(TokenStream& in, const Meshes& meshes) : in_(in), meshes_(meshes) {}

  Fusion run() {
    reserveNames();
    in_.expectWord("fusion");
    if (!in_.at(TokenKind::Word) && !in_.at(TokenKind::String)) in_.fail("the name of the fusion");
    builder_ = FusionBuilder(in_.next().text);
    for (const DeviceMesh& mesh : meshes_) builder_.mesh(mesh);
    inputs();
    if (in_.acceptWord("with")) defaults();
    in_.expectSymbol("{");
    while (in_.acceptWord("guard")) guard();
    while (!in_.atWord("return")) statement();
    int line = in_.next().line;
    returns();
    in_.expectSymbol("}");
    return guarded(line, [&] { return std::move(builder_).build(); });
  }

 private:
  const Fusion& fusion() const { return builder_.fusion(); }

  // Calls `build` and prepends the file and line to the UserErrors that it throws, because the
  // builder does not know the file.
  template <class Build>
  std::invoke_result_t<Build> guarded(int line, Build build) {
    try {
      return build();
    } catch (const UserError& error) {
      throw withText(error, in_.prefix(line) + error.what());
    }
  }

  // Collects all names in the text before parsing. The parser names some values itself, and must
  // not use a name that appears later in the text.
  void reserveNames() {
    int depth = 0;
    for (size_t i = in_.position(); i < in_.tokens().size(); ++i) {
      const Token& token = in_.tokens()[i];
      if (token.kind == TokenKind::Value) reserved_.add(token.text);
      if (token.kind != TokenKind::Symbol) continue;
      depth += token.text == "{" ? 1 : token.text == "}" ? -1 : 0;
      if (depth <= 0 && token.text == "}") return;
    }
  }

  void define(const Token& at, const std::string& name, ValueId id) {
    if (!values_.emplace(name, id).second) {
      in_.failAt(at, fmt::format("%{} is defined twice", name));
    }
    scalars_.emplace(scalarSymbol(name), id);
  }

  ValueId valueRef() {
    if (!in_.at(TokenKind::Value)) in_.fail("a value, as in %x");
    Token at = in_.next();
    auto found = values_.find(at.text);
    if (found == values_.end()) {
      in_.failAt(at, fmt::format("found {}, expected a value defined above", describe(at)));
    }
    return found->second;
  }

  // Replaces the symbols of scalars in a size, such as `%n`, by the sizes that they mean. A kernel
  // of a host program may contain symbols of inputs of the program; these stay.
  Size resolved(const Token& at, const Size& size) {
    if (!size.hasScalar()) return size;
    return guarded(at.line, [&] {
      return size.substitute([&](const std::string& symbol) -> std::optional<Size> {
        const auto found = scalars_.find(symbol);
        return found == scalars_.end() ? std::nullopt
                                       : std::optional(builder_.sizeFrom(found->second));
      });
    });
  }

  // --- header --------------------------------------------------------------------------------

  void inputs() {
    in_.expectSymbol("(");
    if (in_.acceptSymbol(")")) return;
    do {
      input();
    } while (in_.acceptSymbol(","));
    if (!in_.acceptSymbol(")")) in_.fail("',' or ')'");
  }

  void input() {
    Token at = in_.peek();
    std::string name = in_.expectName(TokenKind::Value, "an input, as in %x: f32[t]");
    if (values_.count(name) > 0) in_.failAt(at, fmt::format("%{} is defined twice", name));
    in_.expectSymbol(":");
    ParsedType type = parseType(in_, meshes_, OrderOf::Input);
    builder_.line(at.line);
    if (type.is_scalar) return scalarInput(at, name, type.tensor.dtype);
    for (IterDomain& axis : type.tensor.domain) {
      if (axis.kind != IterKind::Symbolic) continue;
      guarded(at.line, [&] { builder_.symbolicSize(axis.extent.symbolName()); });
    }
    TensorView bare = type.tensor;
    bare.sharding.reset();
    ValueId id = guarded(at.line, [&] { return builder_.input(name, bare); });
    define(at, name, id);
    applySharding(at.line, id, type.tensor.sharding, type.user_sharding);
  }

  void scalarInput(const Token& at, const std::string& name, DType dtype) {
    std::optional<Size> equals;
    std::optional<Scalar> value;
    if (in_.atSymbol("?") && (isFloat(dtype) || dtype == DType::Bool)) {
      in_.fail("an integer type before '?', because the scalar decides sizes");
    }
    if (in_.acceptSymbol("?")) {
      guarded(at.line, [&] { builder_.symbolicSize(scalarSymbol(name)); });
    }
    if (in_.acceptSymbol("==")) equals = parseSize(in_);
    if (in_.acceptSymbol("=")) value = parseDefault(in_, dtype);
    define(at, name, guarded(at.line, [&] {
             const ValueId id = builder_.scalarInput(name, dtype, value);
             if (equals) builder_.requireEqual(id, *equals);
             return id;
           }));
  }

  void defaults() {
    std::set<std::string> seen;
    do {
      Token at = in_.peek();
      std::string symbol = parseDefaultSymbol(in_);
      if (!seen.insert(symbol).second) {
        in_.failAt(at, fmt::format("size {} has two defaults", symbol));
      }
      in_.expectSymbol("=");
      Token value_at = in_.peek();
      int64_t value = in_.expectInt("the default size");
      if (value < 0 && !isScalarSymbol(symbol))
        in_.failAt(value_at, fmt::format("the size {} is negative", value));
      guarded(at.line, [&] { builder_.sizeDefault(symbol, value); });
    } while (in_.acceptSymbol(","));
  }

  void guard() {
    SizeGuard guard = parseGuard(in_);
    for (Size* size : {&guard.a, &guard.b}) *size = resolved(in_.peek(), *size);
    builder_.mutableFusion().guards.push_back(std::move(guard));
  }

  // A result on the left of '=', with its type if the text states the type.
  struct Target {
    Token at;
    std::string name;
    Token type_at;
    std::optional<ParsedType> type;
  };

  Target target() {
    Target target{in_.peek(), {}, {}, {}};
    if (!in_.at(TokenKind::Value)) in_.fail("a statement, as in %y = relu(%x), or return");
    target.name = in_.next().text;
    if (!canName(target.name)) {
      in_.failAt(target.at, fmt::format("{} is not a valid name", describe(target.at)));
    }
    target.type_at = in_.peek(1);
    if (in_.acceptSymbol(":")) target.type = parseType(in_, meshes_, OrderOf::Value);
    if (target.type) {
      for (IterDomain& axis : target.type->tensor.domain) {
        axis.extent = resolved(target.type_at, axis.extent);
      }
    }
    return target;
  }

  void statement() {
    builder_.line(in_.peek().line);
    std::vector<Target> targets = {target()};
    while (in_.acceptSymbol(",")) targets.push_back(target());
    if (!in_.acceptSymbol("=")) in_.fail(targets.back().type ? "'='" : "'=' or ':'");
    const std::vector<ValueId> ids = call(targets);
    for (size_t i = 0; i < ids.size(); ++i) {
      define(targets[i].at, targets[i].name, ids[i]);
      if (targets[i].type) checkType(targets[i].type_at, ids[i], *targets[i].type);
    }
    // A suffix states a sharding or a layout. Only a call with one result has a suffix.
    if (ids.size() == 1) suffix(ids[0]);
  }

  std::vector<ValueId> call(const std::vector<Target>& targets) {
    const Token& at = targets.front().at;
    Token op_at = in_.peek();
    std::string op = in_.expectName(TokenKind::Word, "the name of an op");
    const CallShape shape = guarded(op_at.line, [&] { return callShape(op); });
    std::vector<ValueId> operands;
    Attrs attrs;
    arguments(op, shape, operands, attrs);
    const ValueId before = fusion().values().endId();
    std::vector<ValueId> ids = guarded(
        at.line, [&] { return buildCall(builder_, op, std::move(operands), std::move(attrs)); });
    if (ids.size() != targets.size()) {
      in_.failAt(at, fmt::format("{} has {} result(s), but the text names {}", op, ids.size(),
                                 targets.size()));
    }
    nameNewValues(before, ids, targets);
    return ids;
  }

  void arguments(const std::string& op, const CallShape& shape, std::vector<ValueId>& operands,
                 Attrs& attrs) {
    in_.expectSymbol("(");
    if (in_.acceptSymbol(")")) return;
    bool named = false;
    do {
      named = named || namedArgument();
      if (named) {
        attribute(op, shape, attrs);
      } else if (shape.literal_is_attr && attrs.empty()) {
        attrs.emplace_back(shape.attrs[0].name, parseAttr(in_, shape.attrs[0].type));
      } else {
        operands.push_back(operand());
      }
    } while (in_.acceptSymbol(","));
    if (!in_.acceptSymbol(")")) in_.fail("',' or ')'");
  }

  bool namedArgument() const { return in_.at(TokenKind::Word) && in_.atSymbol("=", 1); }

  void attribute(const std::string& op, const CallShape& shape, Attrs& attrs) {
    Token at = in_.peek();
    if (!namedArgument()) in_.fail("an attribute, as in axis=0");
    in_.next();
    in_.next();
    const AttrSpec* spec = nullptr;
    for (const AttrSpec& candidate : shape.attrs) {
      if (candidate.name == at.text) spec = &candidate;
    }
    if (spec == nullptr) {
      in_.failAt(at, fmt::format("found '{}', expected {}", at.text, attrsOf(op, shape)));
    }
    for (const auto& [name, value] : attrs) {
      if (name == at.text) in_.failAt(at, fmt::format("{} is given twice", at.text));
    }
    attrs.emplace_back(at.text, parseAttr(in_, spec->type));
    // Only attributes of the type std::vector<Size> contain sizes.
    if (auto* sizes = std::get_if<std::vector<Size>>(&attrs.back().second)) {
      for (Size& size : *sizes) size = resolved(at, size);
    }
  }

  ValueId operand() {
    if (in_.at(TokenKind::Value)) return valueRef();
    if (!atScalar(in_)) in_.fail("a value, a number or an attribute");
    Scalar literal = parseScalar(in_);
    ValueId id = builder_.constant(literal);
    rename(id, reserved_.fresh(fmt::format("S{}", id)));
    return id;
  }

  // Names the new values of a call. There may be several: composite ops consist of many ops, and
  // other ops may broadcast their operands. During the call, the builder gives them default names,
  // which might equal later names of the text. The parser therefore renames all of them after the
  // call. A result that existed before the call keeps its name; the name in the text is an alias.
  void nameNewValues(ValueId before, const std::vector<ValueId>& results,
                     const std::vector<Target>& targets) {
    for (ValueId id : IdRange(before, fusion().values().endId())) {
      const auto found = std::find(results.begin(), results.end(), id);
      const size_t i = found - results.begin();
      rename(id, found != results.end() ? targets[i].name : reserved_.fresh(targets.front().name));
    }
  }

  void rename(ValueId id, const std::string& name) {
    builder_.mutableFusion().mutableValue(id).name = name;
  }

  void checkType(const Token& at, ValueId id, const ParsedType& type) {
    const Value& value = fusion().value(id);
    std::string got =
        value.is_scalar ? std::string(heddle::name(value.tensor.dtype)) : printShape(value.tensor);
    std::string said =
        type.is_scalar ? std::string(heddle::name(type.tensor.dtype)) : printShape(type.tensor);
    bool same = value.is_scalar == type.is_scalar && value.tensor.dtype == type.tensor.dtype &&
                value.tensor.sizes() == type.tensor.sizes();
    if (!same) {
      in_.failAt(at, fmt::format("%{} is {}, but the text states {}", value.name, got, said));
    }
    applySharding(at.line, id, type.tensor.sharding, type.user_sharding);
    applyLayout(at, id, type.tensor.layout);
  }

  void returns() {
    do {
      int line = in_.peek().line;
      ValueId id = valueRef();
      const Token at = in_.peek();
      Suffix suffix = parseSuffix(id);
      if (suffix.layout.needed || suffix.layout.hint) {
        in_.failAt(at,
                   "needed order and hinted order follow statements; an output has order= only");
      }
      applySharding(at.line, id, suffix.sharding, !suffix.inferred);
      const std::optional<OutputReuse> reused = reuse();
      guarded(line, [&] { builder_.line(line).output(id, suffix.layout.required, reused); });
    } while (in_.acceptSymbol(","));
  }

  // Parses `in %w` or `in! %w`.
  std::optional<OutputReuse> reuse() {
    if (!in_.acceptWord("in")) return std::nullopt;
    const bool required = in_.acceptSymbol("!");
    return OutputReuse{valueRef(), required};
  }

  // --- shardings and layouts ---------------------------------------------------------------------

  Suffix parseSuffix(ValueId id) {
    const Token at = in_.peek();
    const Value& value = fusion().value(id);
    const bool has_order = atOrder(in_);
    if (value.is_scalar && has_order) {
      in_.failAt(at, fmt::format("%{} is a scalar, which has no memory order", value.name));
    }
    Suffix suffix = heddle::parseSuffix(in_, meshes_, value.tensor.rank(), OrderOf::Value);
    if (value.is_scalar && suffix.sharding) {
      in_.failAt(at, fmt::format("%{} is a scalar, which has no sharding", value.name));
    }
    return suffix;
  }

  void suffix(ValueId id) {
    const Token at = in_.peek();
    Suffix suffix = parseSuffix(id);
    applySharding(at.line, id, suffix.sharding, !suffix.inferred);
    applyLayout(at, id, suffix.layout);
  }

  void applySharding(int line, ValueId id, const std::optional<Sharding>& sharding, bool user) {
    if (!sharding) return;
    if (user) {
      guarded(line, [&] { builder_.shard(id, *sharding); });
    } else {
      builder_.mutableFusion().setSharding(id, *sharding);
    }
  }

  void applyLayout(const Token& at, ValueId id, const Layout& layout) {
    if (layout.required) guarded(at.line, [&] { builder_.requireOrder(id, *layout.required); });
    if (layout.needed) builder_.mutableFusion().layout(id).needed = layout.needed;
    if (layout.hint) builder_.mutableFusion().layout(id).hint = layout.hint;
  }

  TokenStream& in_;
  const Meshes& meshes_;
  FusionBuilder builder_;
  std::unordered_map<std::string, ValueId> values_;
  std::unordered_map<std::string, ValueId> scalars_;  // the same values, by their symbols in sizes
  UniqueNames reserved_{1};
};

}  // namespace

Fusion parseFusionBody(TokenStream& in, const Meshes& meshes) {
  return FusionParser(in, meshes).run();
}

Fusion parseFusion(std::string_view text, std::string_view origin) {
  TokenStream in(text, origin);
  parseVersion(in);
  Meshes meshes = parseMeshes(in);
  Fusion fusion = parseFusionBody(in, meshes);
  in.expectEnd();
  checkSizeSymbols(fusion);
  return fusion;
}

}  // namespace heddle
