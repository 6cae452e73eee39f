#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/program/program.h"
#include "ir/base/lexer.h"

namespace heddle::host {

// Parses the instructions of a host program (host/program/program.h). Requires that `program`
// already contains its meshes, kernels and slots. The first use of a token or event declares it in
// `program`. Throws a UserError that names line and column.
class InstructionParser {
 public:
  InstructionParser(TokenStream& in, Program& program);

  // Parses instructions up to and including the closing brace.
  std::vector<Instruction> body();
  // Returns the slot whose name is the text of `at`. Throws UserError if it is not declared.
  SlotId slotNamed(const Token& at) const;
  // Returns the names of the called programs, each once, in the order of their first calls.
  const std::vector<Token>& called() const { return called_; }

 private:
  Instruction instruction();
  Op op();
  Op assignment();       // %y = ...
  Op tokenAssignment();  // $t = ...
  Op eventAssignment();  // !e = ...
  // Parses an instruction in the regular form: its fields are only slots, tokens, events and a
  // stream, separated by blanks. Returns nullopt if the next word is not the mnemonic of such an
  // instruction. `defined` is the id of the name before the "=", or std::nullopt if there is no
  // "=".
  template <class Defined>
  std::optional<Op> regular(Defined defined);
  template <class Regular>
  Op regularFields(auto defined);
  Op allocate(SlotId out);
  Op alias(SlotId out);
  Op evaluate(SlotId out);
  Op launch();
  Op callLibrary();
  void libraryArguments(const OpDef& op, CallLibrary& call);
  Op copy();
  Op communicate(TokenId token);
  template <class Transfer>
  Op transfer(std::optional<TokenId> token, std::string_view peer_key);
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
  std::string named(std::string_view what);  // parses the name after `$` or `!`
  void arrow();

  TokenStream& in_;
  Program& program_;
  std::map<std::string, SlotId> slots_;
  std::map<std::string, KernelId> kernels_;
  std::map<std::string, TokenId> tokens_;
  std::map<std::string, EventId> events_;
  std::vector<Token> called_;
  std::set<std::string> called_names_;
};

}  // namespace heddle::host
