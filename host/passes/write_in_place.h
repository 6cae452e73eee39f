#pragma once

#include <string>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Stores outputs directly in the inputs whose memory they reuse (Program::reuses). Lowering stores
// such an output in a buffer of its own, and copies this buffer to the input at the end. This pass
// makes the buffer a view of the input (`%w1 = alias %w`) and removes the copy, if all of these
// conditions hold:
// - One Allocate at the top level creates the buffer, and the output is the complete buffer. No
//   loop or branch accesses the buffer. Other outputs may be this buffer or views of it. Such an
//   output becomes a view of the input.
// - No earlier output has made the buffer a view of another input.
// - An instruction writes the buffer. After the first write, only the copy accesses the input. The
//   pass first moves the other instructions that access the input to positions before this write,
//   if they do not depend on the write.
// - If the instruction that first writes the buffer also reads the input, it is a kernel that may
//   work in place (codegen/plan/in_place.h). It reads the complete input and writes the complete
//   buffer.
// - No instruction that uses the buffer or a view of it needs the layout of its type (needsLayout()
//   of host/program/layout_needs.h), or the input has the same memory order without gaps and the
//   same padding.
// - The input has the memory order for which the buffer was created, or the user requires no memory
//   order (Layout::required) of the output and of other outputs that are views of the buffer.
//
// A program does not change if its author has ordered its streams (isUnordered() in
// host/passes/analysis/buffer_accesses.h is false). In all other programs, the pass throws
// UserError if an output with ReusedInput::required still needs a copy. The message gives the
// reason.
//
// The pass also moves instructions so that all allocations at the top level happen before the first
// write to an input. A run that fails because memory is exhausted then leaves its inputs unchanged.
Program writeInPlace(Program program);

// Moves every top-level Allocate that follows the first write to an input to a position directly
// before this write. An earlier pass, such as lift_posts, may have moved the write up. A program
// does not change if no output reuses an input, or if its author has ordered its streams.
Program allocateFirst(Program program);

// Returns one line per output that lower() (host/lower/lower.h) copies to an input. The line says
// that writeInPlace() removes this copy, or why it keeps the copy. `program` is a result of
// lower(). Returns no lines if the author of the program has ordered its streams.
std::vector<std::string> explainReuses(const Program& program);

}  // namespace heddle::host
