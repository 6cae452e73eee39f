#pragma once

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Checks that no output is a view of an input that a later instruction overwrites. The program does
// not say whether such an output has the elements from before or after the write. Throws UserError
// that names the write and the `alias` that defines the output. These writes are allowed:
// - a write before the `alias`
// - a write through a view of the input, to elements that certainly do not belong to the output
// - a write through the output, through a view of the output, or through a view from which the
//   output is derived. Example: `%w1 = alias %w`, `%v = alias %w1 permute=[1, 0]`, and a kernel
//   that writes %w1. A write through another view of %w1 is an error if it may write elements of
//   %v.
// - any write, if the output is declared `in` the input
void checkReturnedViews(const Program& program, const Unrolled& unrolled);

}  // namespace heddle::host
