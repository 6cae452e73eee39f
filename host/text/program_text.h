#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "host/program/program.h"

namespace heddle::host {

// Text of a host program, complete: meshes, kernels as fusion segments, callees, then the program.
// print(parse(x)) == x for any x print() made; parse(print(p)) is sameProgram as p.
std::string print(const Program& program);
std::string printInstruction(const Program& program, const Instruction& instruction);  // one line
// One line per InstructionIndex; For and If print their head only.
std::vector<std::string> instructionTexts(const Program& program);

Program parseProgram(std::string_view text, std::string_view origin = "<text>");

// A .fusion or .hostir file: which one is decided by the first keyword after meshes.
std::variant<Fusion, Program> parseFile(std::string_view text, std::string_view origin);

}  // namespace heddle::host
