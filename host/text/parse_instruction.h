#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/program/program.h"
#include "ir/base/lexer.h"

namespace heddle::host {

// Reads the instructions of a program whose meshes, kernels and slots have been read; tokens and
// events are declared in `program` by their first use.
class InstructionParser {
 public:
  InstructionParser(TokenStream& in, Program& program);

  std::vector<Instruction> body();  // up to and with the closing brace
  SlotId slotNamed(const Token& at) const;
  // The programs that are called, each once, in order.
  const std::vector<Token>& called() const { return called_; }

 private:
  Instruction instruction();
  Op op();
  Op assignment();       // %y = ...
  Op tokenAssignment();  // $t = ...
  Op eventAssignment();  // !e = ...
  // Reads one of the instructions `Regular` if its mnemonic comes next. `defined` is the id before
  // the "=", or kNoId.
  static constexpr int32_t kNoId = -1;
  template <class... Regular>
  std::optional<Op> regular(int32_t defined);
  template <class Regular>
  Op regularFields(int32_t defined);
  Op alias(SlotId out);
  Op evaluate(SlotId out);
  Op launch();
  Op callLibrary();
  void libraryArguments(const OpDef& op, CallLibrary& call);
  Op copy();
  Op communicate(TokenId token);
  Op send(std::optional<TokenId> token);
  Op recv(std::optional<TokenId> token);
  Op loop();
  Op branch();
  Op call();

  SlotId slot();
  std::vector<SlotId> slots();
  TokenId token();
  EventId event();
  StreamId stream();
  int32_t countOf(std::string_view key, int32_t most);
  Team team();
  bool acceptKey(std::string_view key);
  std::string named(std::string_view what);  // the word after a sigil
  void arrow();

  TokenStream& in_;
  Program& program_;
  std::map<std::string, SlotId> slots_;
  std::map<std::string, TokenId> tokens_;
  std::map<std::string, EventId> events_;
  std::vector<Token> called_;
};

}  // namespace heddle::host
