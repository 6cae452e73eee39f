#include <map>

#include "host/text/parse_instruction.h"
#include "host/text/program_rules.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/text_pieces.h"

namespace heddle::host {
namespace {

// Parses one program. Its meshes come first in the text, then its kernels, then the program itself.
class SectionParser {
 public:
  SectionParser(TokenStream& in, const std::map<std::string, Program>& earlier)
      : in_(in), earlier_(earlier) {}

  Program run() {
    program_.meshes = parseMeshes(in_);
    while (in_.atWord("kernel")) kernel();
    if (!in_.atWord("program")) {
      in_.fail(program_.kernels.empty() ? "mesh, kernel or program" : "kernel or program");
    }
    in_.next();
    program_.name = in_.expectName(TokenKind::Word, "the name of the program");
    inputs();
    const std::vector<Token> outputs = outputNames();
    if (in_.acceptWord("with")) defaults();
    in_.expectSymbol("{");
    while (in_.atWord("guard") || in_.atWord("slot")) {
      in_.atWord("guard") ? guard() : slot();
    }
    InstructionParser parser(in_, program_);
    program_.body = parser.body();
    for (const Token& at : outputs) program_.outputs.push_back(parser.slotNamed(at));
    callees(parser.called());
    return std::move(program_);
  }

 private:
  void kernel() {
    in_.next();
    const Token at = in_.peek();
    const std::string name = in_.expectName(TokenKind::Mesh, "the name of a kernel, as in @k0");
    failIf(in_, at, names_.addKernel(name));
    std::string asked = candidate();
    in_.expectSymbol("{");
    program_.kernels.push_back({name, parseFusionBody(in_, program_.meshes), std::move(asked)});
    failIf(in_, at, kernelSizesViolation(program_.kernels.back()));
    in_.expectSymbol("}");
  }

  // Parses `candidate=2` or `candidate="loops unroll=2"`. Returns "" if the text names none.
  std::string candidate() {
    if (!in_.acceptWord("candidate")) return {};
    in_.expectSymbol("=");
    const Token at = in_.peek();
    const char* const expected = "the index of a candidate, or its parameters in quotes";
    if (at.kind == TokenKind::Int) return std::to_string(in_.expectInt(expected));
    std::string text = in_.expectName(TokenKind::String, expected);
    failIf(in_, at, candidateViolation(text));
    return text;
  }

  SlotId declare(std::string_view expected, OrderOf order_of) {
    const Token at = in_.peek();
    const std::string name = in_.expectName(TokenKind::Value, expected);
    failIf(in_, at, names_.addSlot(name));
    in_.expectSymbol(":");
    const bool list = in_.acceptWord("list");
    const Token type_at = in_.peek();
    ParsedType type = parseType(in_, program_.meshes, order_of);
    failIf(in_, type_at, slotSizesViolation(type.tensor));
    Slot slot{name, list || type.is_scalar, std::move(type.tensor), {}, {}};
    if (list && !slot.isList()) in_.fail("the size of a list, as in list i64[ranks]");
    if (in_.atWord("alloc") && in_.atSymbol("=", 1)) alloc(slot);
    return program_.slots.push_back(std::move(slot));
  }

  void alloc(Slot& slot) {
    const Token at = in_.next();
    in_.next();
    slot.alloc = parseSizes(in_);
    failIf(in_, at, allocViolation(slot));
  }

  void inputs() {
    in_.expectSymbol("(");
    if (in_.acceptSymbol(")")) return;
    do {
      const SlotId id = declare("an input, as in %x: f32[t]", OrderOf::Input);
      Slot& slot = program_.slots[id];
      if (slot.is_scalar && in_.acceptSymbol("=")) {
        slot.default_value = parseDefault(in_, slot.tensor.dtype);
      }
      program_.inputs.push_back(id);
    } while (in_.acceptSymbol(","));
    if (!in_.acceptSymbol(")")) in_.fail("',' or ')'");
  }

  std::vector<Token> outputNames() {
    std::vector<Token> out;
    in_.expectSymbol("->");
    in_.expectSymbol("(");
    if (in_.acceptSymbol(")")) return out;
    do {
      if (!in_.at(TokenKind::Value)) in_.fail("an output, as in %y");
      out.push_back(in_.next());
      if (in_.acceptWord("in")) program_.reuses[out.size() - 1] = reusedInput();
    } while (in_.acceptSymbol(","));
    if (!in_.acceptSymbol(")")) in_.fail("',' or ')'");
    return out;
  }

  // Parses the text after `in`, which is `%w` or `! %w`.
  ReusedInput reusedInput() {
    const bool required = in_.acceptSymbol("!");
    const Token at = in_.peek();
    const std::string name = in_.expectName(TokenKind::Value, "an input, as in %w");
    for (SlotId id : program_.inputs) {
      if (program_.slots[id].name == name) return {id, required};
    }
    in_.failAt(at, noInput(describe(at)));
  }

  void defaults() {
    do {
      const Token at = in_.peek();
      const std::string symbol = parseDefaultSymbol(in_);
      failIf(in_, at, names_.addSizeDefault(symbol));
      in_.expectSymbol("=");
      const Token value_at = in_.peek();
      const int64_t value = in_.expectInt("the default size");
      failIf(in_, value_at, defaultSizeViolation(symbol, value));
      program_.size_defaults.emplace_back(symbol, value);
    } while (in_.acceptSymbol(","));
  }

  void guard() {
    in_.next();
    program_.guards.push_back(parseGuard(in_));
  }

  void slot() {
    in_.next();
    declare("a slot, as in %y: f32[t]", OrderOf::Value);
  }

  void callees(const std::vector<Token>& called) {
    for (const Token& at : called) {
      const auto found = earlier_.find(at.text);
      if (found == earlier_.end()) {
        in_.failAt(
            at, fmt::format("found {}, expected a program from earlier in the file", describe(at)));
      }
      failIf(in_, at, calleeViolation(program_, found->second));
      program_.callees.push_back(found->second);
    }
  }

  TokenStream& in_;
  const std::map<std::string, Program>& earlier_;
  Program program_;
  DeclaredNames names_;
};

Program parseSections(TokenStream& in) {
  std::map<std::string, Program> earlier;
  for (;;) {
    const Token at = in.peek();
    Program program = SectionParser(in, earlier).run();
    if (in.atEnd()) return program;
    const std::string name = program.name;
    if (!earlier.emplace(name, std::move(program)).second) {
      in.failAt(at, twoPrograms(name));
    }
  }
}

}  // namespace

Program parseProgram(std::string_view text, std::string_view origin) {
  TokenStream in(text, origin);
  parseVersion(in);
  return parseSections(in);
}

std::variant<Fusion, Program> parseFile(std::string_view text, std::string_view origin) {
  TokenStream in(text, origin);
  parseVersion(in);
  const size_t start = in.position();
  parseMeshes(in);
  if (in.atWord("fusion")) return parseFusion(text, origin);
  if (!in.atWord("kernel") && !in.atWord("program")) in.fail("mesh, fusion, kernel or program");
  in.seek(start);
  return parseSections(in);
}

}  // namespace heddle::host
