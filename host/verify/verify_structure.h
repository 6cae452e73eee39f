#pragma once

#include <set>
#include <string>

#include "host/program/program.h"

namespace heddle::host {

// Makes the checks of verify() (host/verify/verify.h) that need no sizes, for a host program and
// the programs that it calls. Throws UserError.
void verifyStructure(const Program& program);

// Makes the checks of verifyStructure() that need only this instruction and the declarations of the
// program. Does not check the bodies of the instruction. Throws UserError that names the
// instruction by `index` and text.
void verifyInstruction(const Program& program, const Instruction& x, InstructionIndex index);

// --- parts of verifyInstruction() --------------------------------------------------------------

// Checks that the ids of an instruction are in range. The UserError does not name the instruction.
void verifyIds(const Program& program, const Instruction& x);
// Checks the slots, operands and attributes of an instruction. Requires that verifyIds() has
// accepted it. The UserError does not name the instruction.
void verifyOperands(const Program& program, const Op& op);

}  // namespace heddle::host
