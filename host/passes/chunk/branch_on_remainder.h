#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Returns a program that runs `even` if `rest` is zero for the sizes of a run, and `otherwise` if
// it is not. Both have the same signature and meshes. The kernels, slots and tokens of `even` begin
// with those of `otherwise`.
Program branchOnRemainder(const Size& rest, Program even, Program otherwise);

}  // namespace heddle::host
