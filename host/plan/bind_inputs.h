#pragma once

#include <cstdint>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/size_inputs.h"
#include "host/program/program.h"
#include "host/unroll/late_scalars.h"
#include "host/unroll/unroll.h"
#include "ir/base/size.h"
#include "ir/sizes/size_guard.h"

namespace heddle::host {

// The inputs of a program whose values decide sizes or where slices begin (`size_inputs`). `late`
// contains the inputs that decide only where slices begin (host/unroll/late_scalars.h). The search
// for these inputs takes time, but the result is the same for all runs of the program. A
// HostIrEvaluator (host/run/evaluator.h) therefore creates this object once.
struct InputFacts {
  explicit InputFacts(const Program& program) : size_inputs(program), late(lateInputsOf(program)) {}
  SizeInputs size_inputs;
  LateInputs late;
};

// Checks the arguments of a run against the program, and derives the sizes of the program from
// them. Returns the request to pass to unroll() (host/unroll/unroll.h).
//
// - Empty lists of a descriptor are filled: `global` and `alloc` with the sizes, and `strides` with
//   the row-major strides of `alloc`. `offset` becomes the position of this rank's block.
// - Scalars at the end of `inputs` may be missing if they have defaults.
//
// Throws UserError for any of these faults. The message names the input if the fault concerns a
// single input.
// - The number of arguments is wrong, or a scalar is passed for a tensor or a tensor for a scalar.
// - A dtype, a number of axes, a size, an allocated size or the length of a list in a descriptor is
//   wrong, or a stride is negative.
// - Two axes of inputs, or an axis and a scalar, give different values to one symbol. The message
//   names both.
// - A tensor with axes is in host memory.
// - A tensor with elements has no data, or its address is not a multiple of the size of an element
//   (isAtElement()).
// - The descriptor of a sharded input has no `global`, or is not the block of this rank.
// - The strides do not have the memory order or the contiguous axes for which the program was
//   compiled.
// - A guard of the program fails, for example because two sizes differ that must be equal.
// - The value of an input that decides a size or an offset is not valid (SizeInputs::value()).
UnrollRequest bindInputs(const Program& program, const InputFacts& facts,
                         const std::vector<Argument>& inputs, int64_t rank, int64_t ranks);

// Returns whether the address of a tensor is a multiple of the size of an element. No GPU can read
// an element at another address. Returns true for a tensor in host memory or without elements.
bool isAtElement(const Tensor& tensor);

// Adds the defaults of the program to `sizes` for symbols without a value. Then checks the guards
// of the program (checkGuards()), and throws UserError if one fails. `sources` says for messages
// where a value comes from.
void completeSizes(const Program& program, SizeBindings& sizes, const SizeSources& sources = {});

// Returns a copy of the program in which every mesh has its size in a job of `ranks` ranks. This
// includes the meshes of kernel segments and of callees.
Program concretized(Program program, int64_t ranks);

}  // namespace heddle::host
