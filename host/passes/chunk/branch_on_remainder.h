#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Returns a program with one `if`. A run executes `even` if `rest` is zero for its sizes. All other
// runs execute `otherwise`. The caller ensures that
//   both programs have the same signature and the same meshes, and
//   the lists of kernels, slots and tokens of `even` begin with the lists of `otherwise`.
Program branchOnRemainder(const Size& rest, Program even, Program otherwise);

}  // namespace heddle::host
