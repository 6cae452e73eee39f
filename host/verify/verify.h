#pragma once

#include <cstdint>
#include <optional>

#include "host/program/program.h"

namespace heddle::host {

// The job in which a program will run, as far as it is known.
struct ActualJob {
  int64_t ranks = 0;  // number of ranks; 0: unknown
  // Values of the symbols of the program. nullopt: unknown, because there are no inputs yet.
  std::optional<SizeBindings> sizes = {};
};

// Checks that a host program is legal. Throws UserError. If the error is in an instruction, the
// message usually contains its index and text.
//
// The main checks that need no sizes:
// - Ids are in range, and names are unique. Loop indices are used only in their loops.
// - One kernel can compute the expressions of each Kernel (docs/kernels.md).
// - Each slot that an instruction names is a tensor, a scalar or a list, as the instruction needs.
//   The operands of a launch have the dtypes and the numbers of axes that the kernel needs.
// - For each token that an instruction waits for, some instruction posts an operation with this
//   token. For each event that an instruction waits for, some instruction records the event.
// - Groups end in the body in which they begin, and post only sends and receives.
// - No instruction changes an input that decides sizes.
//
// Checks for each rank of a job, after loops are expanded and views are resolved for the rank:
// - The program can be unrolled. For example, all views exist (the strides of their operands allow
//   them), and the operands of each instruction fit.
// - There are no races, and every buffer is freed or returned on every path. A race is two accesses
//   to overlapping bytes of one buffer, at least one of them a write, whose order nothing
//   determines. Three things determine the order of two accesses: a common stream, a RecordEvent
//   with a WaitEvent, or a token with a Wait. This check covers only the first 64 ranks.
// - No output is a view of an input whose elements in this view may be overwritten after the view
//   was defined. Writes through the output, or through a view from which it is derived, are
//   allowed. This check covers the same ranks.
// - The posts of all ranks match: the ranks of a team post the same collectives in the same order,
//   and each send has its receive. This check omits a post in a branch that only the run decides,
//   and may omit later posts of the same team.
//
// The job and the sizes of these checks:
// - If the job is known, verify() checks it.
// - If the job is unknown, verify() checks the smallest job that contains all ranks of the meshes
//   and all constant roots and peers of teams whose size follows from the job. If the meshes need
//   more than 1024 ranks, verify() ignores them here. If the program depends on the number of
//   ranks, verify() checks up to three jobs: the smallest ones that contain these ranks.
// - If the sizes are known, they are used. Otherwise symbols have their defaults. For symbols
//   without a default, verify() tries a few small values, until the program can be unrolled.
// - If the job is known but the sizes are not, verify() may find no sizes for which the program can
//   be unrolled in this job. verify() then checks the smallest jobs instead.
void verify(const Program& program, const ActualJob& actual = {});

}  // namespace heddle::host
