#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Checks what a caller passes against the program and values its sizes: the request of a unrolled
// program. Descriptors are completed: empty `global`, `alloc`, `strides` and `offset` take the
// values of an unpadded row-major tensor. Scalars with defaults may be left out at the end.
// UserError naming the input: count, scalar for tensor, dtype, rank, sizes (a symbol with two
// values names both inputs), a tensor with axes in host memory, a block that is not this rank's,
// another memory order than the one the program was compiled for, a guard that fails.
UnrollRequest bindInputs(const Program& program, const std::vector<Argument>& inputs, int64_t rank,
                         int64_t ranks);

// Gives the symbols without a value their defaults, then checks the guards.
void completeSizes(const Program& program, SizeBindings& sizes);

// A copy whose meshes have the size of the job, callees included.
Program concretized(Program program, int64_t ranks);

}  // namespace heddle::host
