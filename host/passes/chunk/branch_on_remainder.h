#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Returns a program that consists of one If instruction. A run executes `even` if `rest` is zero
// for the sizes of the run. All other runs execute `otherwise`. The caller must ensure two things:
// - Both programs have the same inputs, outputs and meshes.
// - The lists of kernels, slots and tokens of `even` begin with the lists of `otherwise`.
Program branchOnRemainder(const Size& rest, Program even, Program otherwise);

}  // namespace heddle::host
