#pragma once

#include <set>
#include <string>

#include "host/program/program.h"

namespace heddle::host {

// Checks everything of verify() that needs no sizes, for the program and its callees. UserError.
void verifyStructure(const Program& program);

// verifyIds() checks that the ids of an instruction are in range. verifyInstruction() requires
// this, and checks slots, operands and attributes. Their UserError does not name the instruction.
void verifyIds(const Program& program, const Instruction& x);
void verifyInstruction(const Program& program, const Op& op);

}  // namespace heddle::host
