#pragma once

#include <optional>
#include <string_view>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Functions that check the operands of an instruction for one rank and one set of sizes. An operand
// is a view: a buffer, an offset and a descriptor (host/unroll/unroll.h). If a check fails, the
// function throws UserError. The caller must add the name of the instruction to the message.

// Checks that a tensor that the user passes to a run fits the input slot. `got` describes this
// tensor, and `expected` follows from the type of the slot. Dtype and local sizes must be equal.
// The tensor may allocate more than its sizes, but not less. No stride may be negative. If the type
// declares a memory order and contiguous axes (Layout::observed), the tensor must have them.
void checkInput(const Slot& slot, const TensorDesc& expected, const TensorDesc& got);
// Checks that the sizes of a library call fit together. Also checks that no result overlaps an
// operand or another result. `program` gives names of slots for messages.
void checkLibrary(const Program& program, const CallLibrary& x, const UnrolledStep& step);
// Checks the number of operands of a kernel, and the number of axes of each operand. Where the
// kernel declares an axis of size 1, the operand must have size 1. An input and an output may share
// memory only if both of these are true:
// - They are the same view.
// - The kernel reads no element of the input after it may have overwritten the element
//   (codegen::InPlaceRules).
// Does not check a launch whose outputs are all empty.
void checkLaunch(const Fusion& segment, const UnrolledStep& step);
// Returns the values of the symbols in the sizes of a kernel for one launch. The symbols of a
// kernel are separate from those of the program, but usually have the same names and values. The
// function therefore tries `program` first, the values of the program's symbols:
// - If all operands then have the sizes that the kernel declares, returns `program` itself, to
//   avoid a copy.
// - Otherwise computes the values from the sizes of the operands, stores them in `own` and returns
//   `own`. A symbol that these sizes do not determine has no value. If the operands contradict the
//   declared sizes, `own` is empty.
const SizeBindings& sizesInside(const Fusion& segment, const UnrolledStep& step,
                                const SizeBindings& program, SizeBindings& own);
// Returns the guards of a kernel that contain only symbols with values in `sizes`.
std::vector<SizeGuard> knownGuards(const Fusion& segment, const SizeBindings& sizes);
// Checks that the view repeats no elements along an axis (repeatedAxis()). The check fails for an
// expanded view, because its elements share addresses.
void checkWritten(const Slot& slot, const View& view);
// Checks that source and destination have the same dtype and sizes. They must not overlap, unless
// they are the same view.
void checkCopy(const UnrolledStep& step);
// The position of this rank in the team of a collective. A collective has two sides: its inputs and
// its outputs. A part is the range of memory that one rank contributes or gets.
struct TeamPosition {
  int64_t rank;   // position of this rank in the team
  int64_t size;   // number of ranks of the team
  int64_t parts;  // number of ranks that have a part: `size`, or one less if the root has no part
                  // (UnrolledStep::root_apart)
  // One entry per pair of the collective (Communicate::pairs()). If this rank has only the input
  // view of the pair, the entry is the number of elements that each rank with an output view
  // allocates for the output. If this rank has only the output view, the entry is the number of
  // elements that each rank with an input view allocates for the input. nullopt: this rank has both
  // views or neither, or the type of the slot does not determine the number.
  std::vector<std::optional<int64_t>> elsewhere;
};
// Checks the views of a collective. Each view must be dense. The dtypes, the numbers of allocated
// elements and the memory orders of both sides must fit. Exception: for an all-to-all-v, only the
// dtypes are compared, because only the run knows the counts. The sides must not overlap, except in
// the ways that the transports allow (comm/communicator.h). No result may overlap a buffer of
// another pair. The caller must pass views without a buffer for a side on which this rank has no
// part.
void checkCollective(const Communicate& x, const UnrolledStep& step, const TeamPosition& position);
// Checks that the tensor has `elements` elements. If there are several, they must be dense in
// row-major order.
void checkReadBack(const Slot& slot, const UnrolledStep& step, int64_t elements);
// Checks that the view is one range of memory without gaps, in any order of axes, and repeats no
// elements. `what` names the operation in the message.
void checkDense(const View& view, std::string_view what);

}  // namespace heddle::host
