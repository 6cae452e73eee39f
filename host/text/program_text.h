#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "host/program/program.h"

namespace heddle::host {

// Returns the text of a complete host program: first the programs that it calls, then the program
// itself, each with its meshes and its kernels. Throws UserError if two different programs have one
// name. The text contains everything that sameProgram() (host/program/program.h) compares:
//   sameProgram(p, parseProgram(print(p))) is true for every program p that verify()
//   (host/verify/verify.h) accepts and that calls each of its callees.
//   print(parseProgram(x)) == x for every text x that print() has returned.
std::string print(const Program& program);
// Returns the text of one instruction, on one line. The text of a For or If has no bodies.
std::string printInstruction(const Program& program, const Instruction& instruction);
// Returns printInstruction() of every instruction. The index into the result is the
// InstructionIndex.
std::vector<std::string> instructionTexts(const Program& program);

// Parses a text that contains a program, preceded by the programs that it calls. Throws a UserError
// that names `origin`, line and column.
Program parseProgram(std::string_view text, std::string_view origin = "<text>");

// Parses `text`, the contents of a .fusion or .hostir file. The first keyword after the meshes
// decides whether the text is a fusion or a host program. Throws a UserError that names `origin`,
// line and column.
std::variant<Fusion, Program> parseFile(std::string_view text, std::string_view origin);

}  // namespace heddle::host
