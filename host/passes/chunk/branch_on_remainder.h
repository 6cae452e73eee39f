#pragma once

#include "host/program/program.h"

namespace heddle::host {

// A program that does what `even` does where `rest` is zero for the sizes of a run, else what
// `otherwise` does. Both have the same signature and meshes; `even` has the kernels, slots and
// tokens of `otherwise`, and more behind them.
Program branchOnRemainder(const Size& rest, Program even, Program otherwise);

}  // namespace heddle::host
