#pragma once

#include <set>
#include <string>

#include "host/program/program.h"

namespace heddle::host {

// All of verify() that needs no sizes, callees included.
void verifyStructure(const Program& program);

// What verify_structure.cpp asks of one instruction; UserError without its place.
void verifyIds(const Program& program, const Instruction& x);
void verifyInstruction(const Program& program, const Op& op);

}  // namespace heddle::host
