#include "host/text/parse_instruction.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "host/program/library_op.h"
#include "host/program/visit.h"
#include "host/text/program_rules.h"
#include "host/text/text_names.h"
#include "ir/base/check.h"
#include "ir/text/text_pieces.h"

namespace heddle::host {
namespace {

// Returns the id of a name. If the name is new, declares it.
template <class IdType>
IdType declared(std::map<std::string, IdType>& ids, IdVector<IdType, std::string>& names,
                const std::string& name) {
  const auto [found, is_new] = ids.emplace(name, names.endId());
  if (is_new) names.push_back(name);
  return found->second;
}

template <class Field>
struct MemberOf;
template <FieldKind kKind, class X, class T>
struct MemberOf<Field<kKind, X, T>> {
  using Type = T;
};

// Returns whether the text of the instruction X has the form that InstructionParser::regular()
// parses. `Defined` is the type of the id before the "=", or std::nullopt_t if there is no "=".
template <class X, class Defined>
constexpr bool isRegular() {
  bool is_regular = true, defines = false;
  const auto add = [&](const auto& field) {
    using One = std::decay_t<decltype(field)>;
    using Member = typename MemberOf<One>::Type;
    const bool is_id = std::is_same_v<Member, SlotId> || std::is_same_v<Member, TokenId> ||
                       std::is_same_v<Member, EventId>;
    if (field.role.defines) {
      defines = true;
      is_regular = is_regular && std::is_same_v<Member, Defined>;
    } else {
      is_regular = is_regular && (is_id || One::kKind == FieldKind::StreamUse);
    }
  };
  std::apply([&](const auto&... fields) { (add(fields), ...); }, FieldList<X>::kFields);
  return is_regular && defines != std::is_same_v<Defined, std::nullopt_t>;
}

}  // namespace

InstructionParser::InstructionParser(TokenStream& in, Program& program)
    : in_(in), program_(program) {
  for (SlotId id : program.slots.ids()) slots_.emplace(program.slots[id].name, id);
  for (KernelId id : program.kernels.ids()) kernels_.emplace(program.kernels[id].name, id);
}

std::vector<Instruction> InstructionParser::body() {
  TokenStream::Nesting nesting(in_);
  std::vector<Instruction> out;
  while (!in_.acceptSymbol("}")) out.push_back(instruction());
  return out;
}

Instruction InstructionParser::instruction() {
  Instruction out;
  out.line = in_.peek().line;
  if (in_.acceptWord("on")) {
    out.on = parseMeshRef(in_, program_.meshes);
    in_.expectSymbol(":");
  }
  out.op = op();
  return out;
}

Op InstructionParser::op() {
  if (in_.at(TokenKind::Value)) return assignment();
  if (in_.acceptSymbol("$")) return tokenAssignment();
  if (in_.acceptSymbol("!")) return eventAssignment();
  if (in_.acceptWord("launch")) return launch();
  if (in_.acceptWord("call_library")) return callLibrary();
  if (in_.acceptWord("copy")) return copy();
  if (in_.acceptWord("send")) return send(std::nullopt);
  if (in_.acceptWord("recv")) return recv(std::nullopt);
  if (in_.acceptWord("for")) return loop();
  if (in_.acceptWord("if")) return branch();
  if (in_.acceptWord("call")) return call();
  std::optional<Op> made = regular(std::nullopt);
  if (made) return *std::move(made);
  in_.fail("an instruction or '}'");
}

// Parses the fields of an instruction after its mnemonic. The text contains them in the order of
// the field list.
template <class Regular>
Op InstructionParser::regularFields(auto defined) {
  Regular made{};
  forEachFieldOf(made, [&](const auto& field, auto& member) {
    constexpr FieldKind kKind = std::decay_t<decltype(field)>::kKind;
    if (field.role.defines) {
      if constexpr (std::is_same_v<decltype(member), decltype(defined)&>) member = defined;
    } else if constexpr (kKind == FieldKind::Slot) {
      member = slot();
    } else if constexpr (kKind == FieldKind::Token) {
      member = token();
    } else if constexpr (kKind == FieldKind::EventUse) {
      member = event();
    } else {
      static_assert(kKind == FieldKind::StreamUse, "this instruction has no regular form");
      member = stream();
    }
  });
  return made;
}

template <class Defined>
std::optional<Op> InstructionParser::regular(Defined defined) {
  std::optional<Op> made;
  const auto read = [&]<class X>(std::type_identity<X>) {
    if constexpr (isRegular<X, Defined>()) {
      if (!made && in_.acceptWord(X::kMnemonic)) made = regularFields<X>(defined);
    }
  };
  const auto read_all = [&]<class... X>(std::type_identity<std::variant<X...>>) {
    (read(std::type_identity<X>()), ...);
  };
  read_all(std::type_identity<Op>());
  return made;
}

Op InstructionParser::assignment() {
  const SlotId out = slot();
  in_.expectSymbol("=");
  if (in_.acceptWord("allocate")) return allocate(out);
  if (in_.acceptWord("alias")) return alias(out);
  if (in_.acceptWord("evaluate")) return evaluate(out);
  std::optional<Op> made = regular(out);
  if (made) return *std::move(made);
  in_.fail("allocate, alias, evaluate or read_back");
}

Op InstructionParser::tokenAssignment() {
  const TokenId id = declared(tokens_, program_.tokens, named("a token, as in $t"));
  in_.expectSymbol("=");
  if (in_.acceptWord("communicate")) return communicate(id);
  if (in_.acceptWord("send")) return send(id);
  if (in_.acceptWord("recv")) return recv(id);
  std::optional<Op> made = regular(id);
  if (made) return *std::move(made);
  in_.fail("communicate, send, recv or group_end");
}

Op InstructionParser::eventAssignment() {
  const EventId id = declared(events_, program_.events, named("an event, as in !e"));
  in_.expectSymbol("=");
  std::optional<Op> made = regular(id);
  if (made) return *std::move(made);
  in_.fail("'record_event'");
}

Op InstructionParser::allocate(SlotId out) {
  Allocate made{out};
  if (in_.acceptWord("reuse")) {
    in_.expectSymbol("=");
    made.reuse = slots();
  }
  made.stream = stream();
  return made;
}

Op InstructionParser::alias(SlotId out) {
  Alias made{out, slot(), Alias::Same{}};
  if (in_.acceptSymbol("[")) {
    made.view = Alias::Index{parseSize(in_)};
    in_.expectSymbol("]");
  } else if (in_.acceptWord("reshape")) {
    made.view = Alias::Reshape{};
  } else if (in_.acceptWord("permute")) {
    in_.expectSymbol("=");
    made.view = Alias::Permute{parseInts(in_)};
  } else if (in_.acceptWord("slice")) {
    Alias::Slice slice;
    in_.expectWord("starts");
    in_.expectSymbol("=");
    slice.starts = parseSizes(in_);
    in_.expectWord("stops");
    in_.expectSymbol("=");
    slice.stops = parseSizes(in_);
    if (in_.acceptWord("steps")) {
      in_.expectSymbol("=");
      slice.steps = parseInts(in_);
    }
    made.view = std::move(slice);
  } else if (in_.acceptWord("shard")) {
    made.view = Alias::Shard{};
  } else if (in_.acceptWord("unpad")) {
    made.view = Alias::Unpad{};
  } else if (in_.acceptWord("expand")) {
    in_.expectSymbol("=");
    made.view = Alias::Expand{parseInts(in_)};
  } else if (in_.acceptWord("diagonal")) {
    in_.expectSymbol("=");
    const std::vector<int64_t> axes = parseInts(in_);
    if (axes.size() != 2) in_.fail("two axes");
    made.view = Alias::Diagonal{axes[0], axes[1]};
  }
  return made;
}

Op InstructionParser::evaluate(SlotId out) {
  if (in_.atWord("i64") && in_.atSymbol("(", 1)) {
    in_.next();
    in_.next();
    const int64_t value = in_.expectInt("an integer");
    in_.expectSymbol(")");
    return Evaluate{out, Scalar(value)};
  }
  if (in_.at(TokenKind::Word) && in_.atSymbol("(", 1) && in_.peek(2).kind == TokenKind::Value) {
    const Token at = in_.next();
    failIf(in_, at, pointwiseViolation(at.text));
    return Evaluate{out, Evaluate::Apply{findOp(at.text), slots()}};
  }
  const bool integer = in_.peek(in_.atSymbol("-") ? 1 : 0).kind == TokenKind::Int;
  if (atScalar(in_) && !integer) return Evaluate{out, parseScalar(in_)};
  return Evaluate{out, parseSize(in_)};
}

Op InstructionParser::launch() {
  if (!in_.at(TokenKind::Mesh)) in_.fail("a kernel, as in @k0");
  const Token at = in_.next();
  const auto found = kernels_.find(at.text);
  if (found == kernels_.end()) {
    in_.failAt(at, fmt::format("found {}, expected a kernel of this program", describe(at)));
  }
  LaunchKernel out{found->second, slots(), {}};
  arrow();
  out.outputs = slots();
  out.stream = stream();
  return out;
}

Op InstructionParser::callLibrary() {
  CallLibrary out;
  const Token at = in_.peek();
  out.function = in_.at(TokenKind::String)
                     ? in_.next().text
                     : in_.expectName(TokenKind::Word, "a library function, as in matmul");
  const OpDef* op = findLibraryOp(out.function);
  if (op == nullptr) in_.failAt(at, noLibraryFunction(out.function));
  libraryArguments(*op, out);
  arrow();
  out.outputs = slots();
  out.spare_sms = countOf("spare_sms", kMostCtas);
  out.stream = stream();
  return out;
}

// Parses KEY=NUMBER. Returns 0 if KEY is not the next word.
int32_t InstructionParser::countOf(std::string_view key, int32_t most) {
  if (!acceptKey(key)) return 0;
  const Token at = in_.peek();
  const int64_t count = in_.expectInt("a number");
  failIf(in_, at, countViolation(key, count, most));
  return static_cast<int32_t>(count);
}

// Parses arguments such as (%a, %b, axis=1). The text may contain attributes such as `axis` in any
// order. The instruction stores them in the order of the op table.
void InstructionParser::libraryArguments(const OpDef& op, CallLibrary& call) {
  std::vector<std::optional<Attr>> found(op.attrs.size());
  in_.expectSymbol("(");
  for (bool more = !in_.atSymbol(")"); more; more = in_.acceptSymbol(",")) {
    if (in_.at(TokenKind::Value)) {
      call.inputs.push_back(slot());
      continue;
    }
    const auto spec = std::find_if(op.attrs.begin(), op.attrs.end(), [&](const AttrSpec& each) {
      return in_.atWord(each.name) && in_.atSymbol("=", 1);
    });
    if (spec == op.attrs.end()) in_.fail(libraryArgumentsOf(op));
    std::optional<Attr>& value = found[spec - op.attrs.begin()];
    if (value) in_.failAt(in_.peek(), repeatedAttribute(spec->name));
    in_.next();
    in_.next();
    value = parseAttr(in_, spec->type);
  }
  if (!in_.acceptSymbol(")")) in_.fail("',' or ')'");
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) call.attrs.emplace_back(op.attrs[i].name, std::move(*found[i]));
  }
}

Op InstructionParser::copy() {
  Copy out;
  out.in = slot();
  arrow();
  out.out = slot();
  out.stream = stream();
  return out;
}

Op InstructionParser::loop() {
  For out;
  out.index = in_.at(TokenKind::String) ? in_.next().text
                                        : in_.expectName(TokenKind::Word, "a loop index, as in i");
  in_.expectWord("in");
  out.start = parseSize(in_);
  in_.expectSymbol(".");
  in_.expectSymbol(".");
  out.stop = parseSize(in_);
  in_.expectSymbol("{");
  out.body = body();
  return out;
}

Op InstructionParser::branch() {
  If out;
  if (in_.at(TokenKind::Value)) {
    out.predicate.lhs = slot();
  } else {
    out.predicate.lhs = parseSize(in_);
  }
  out.predicate.compare = parseOneOf(in_, kCompares, "==, !=, <, <=, > or >=");
  out.predicate.rhs = parseSize(in_);
  in_.expectSymbol("{");
  out.then_body = body();
  if (in_.acceptWord("else")) {
    in_.expectSymbol("{");
    out.else_body = body();
  }
  return out;
}

Op InstructionParser::call() {
  if (!in_.at(TokenKind::Mesh)) in_.fail("a program, as in @other");
  const Token at = in_.next();
  if (called_names_.insert(at.text).second) called_.push_back(at);
  Call out{at.text, slots(), {}};
  arrow();
  out.outputs = slots();
  return out;
}

SlotId InstructionParser::slotNamed(const Token& at) const {
  const auto found = slots_.find(at.text);
  if (found == slots_.end()) {
    in_.failAt(at, fmt::format("found {}, expected a declared slot", describe(at)));
  }
  return found->second;
}

SlotId InstructionParser::slot() {
  if (!in_.at(TokenKind::Value)) in_.fail("a slot, as in %x");
  return slotNamed(in_.next());
}

std::vector<SlotId> InstructionParser::slots() {
  std::vector<SlotId> out;
  in_.expectSymbol("(");
  if (in_.acceptSymbol(")")) return out;
  do {
    out.push_back(slot());
  } while (in_.acceptSymbol(","));
  if (!in_.acceptSymbol(")")) in_.fail("',' or ')'");
  return out;
}

std::string InstructionParser::named(std::string_view what) {
  if (in_.at(TokenKind::String)) return in_.next().text;
  return in_.expectName(TokenKind::Word, what);
}

TokenId InstructionParser::token() {
  if (!in_.acceptSymbol("$")) in_.fail("a token, as in $t");
  return declared(tokens_, program_.tokens, named("a token, as in $t"));
}

EventId InstructionParser::event() {
  if (!in_.acceptSymbol("!")) in_.fail("an event, as in !e");
  return declared(events_, program_.events, named("an event, as in !e"));
}

StreamId InstructionParser::stream() {
  if (!in_.atWord("stream") || !in_.atSymbol("=", 1)) return kCallerStream;
  in_.next();
  in_.next();
  const Token at = in_.peek();
  const int64_t id = in_.expectInt("the number of a stream");
  failIf(in_, at, streamViolation(id));
  return StreamId(id);
}

void InstructionParser::arrow() { in_.expectSymbol("->"); }

}  // namespace heddle::host
