#pragma once

#include <vector>

#include "host/device/device_tensor.h"
#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Checks the arguments of a run against the program, and derives the sizes of the program from
// them. Returns the request for unroll().
//
// Descriptors are completed: empty `global`, `alloc`, `strides` and `offset` take the values of an
// unpadded row-major tensor. Trailing scalars with defaults may be missing.
//
// UserError naming the input, for
// - a wrong number of arguments, or a scalar in place of a tensor;
// - a wrong dtype, rank or size, or a symbol with two values (the message names both inputs);
// - a tensor with axes in host memory;
// - a block that is not the block of this rank;
// - a memory order for which the program was not compiled;
// - a guard of the program that fails.
UnrollRequest bindInputs(const Program& program, const std::vector<Argument>& inputs, int64_t rank,
                         int64_t ranks);

// Gives symbols without a value their defaults, then checks the guards.
void completeSizes(const Program& program, SizeBindings& sizes);

// Returns a copy of the program in which every mesh has its size in a job of `ranks` ranks. This
// includes the meshes of callees.
Program concretized(Program program, int64_t ranks);

}  // namespace heddle::host
