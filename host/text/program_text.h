#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "host/program/program.h"

namespace heddle::host {

// Prints a complete host program: callees, then the program, each with its meshes and its kernels
// as fusion segments. print(parse(x)) == x for every x that print() returned, and sameProgram(p,
// parse(print(p))) holds.
std::string print(const Program& program);
std::string printInstruction(const Program& program, const Instruction& instruction);  // one line
// Returns one line per InstructionIndex. For and If print only their head.
std::vector<std::string> instructionTexts(const Program& program);

// Parses a program. UserError names `origin`, line and column.
Program parseProgram(std::string_view text, std::string_view origin = "<text>");

// Parses a .fusion or .hostir file. The first keyword after the meshes decides which one it is.
std::variant<Fusion, Program> parseFile(std::string_view text, std::string_view origin);

}  // namespace heddle::host
