#pragma once

#include <cstdint>
#include <optional>

#include "host/program/program.h"

namespace heddle::host {

struct Unrolled;  // host/unroll/unroll.h

// The job in which a program will run, as far as it is known.
struct ActualJob {
  int64_t ranks = 0;  // number of ranks; 0: unknown
  // Values of the symbols of the program. nullopt: unknown, because there are no inputs yet.
  std::optional<SizeBindings> sizes = {};
};

// Checks that a host program is legal. Throws UserError that names the instruction by index and
// text.
//
// Checks that need no sizes:
// - Ids are in range. Loop indices are used only in their loops.
// - Slots have the kind, dtype and rank that each instruction needs. The operands of a launch fit
//   the kernel.
// - For each token that an instruction waits for, some instruction posts an operation with this
//   token. For each event that an instruction waits for, some instruction records the event.
// - Groups end in the body in which they begin, and post only sends and receives.
//
// Checks for each rank of a job, on its unrolled program (host/unroll/unroll.h):
// - All views exist.
// - There are no races, and every buffer is freed or returned on every path (checkRaces()). This
//   check covers only the first 64 ranks.
// - The posts of all ranks match (host/verify/match_collectives.h).
//
// The job and the sizes of these checks:
// - If the job is known, verify() checks it.
// - If the job is unknown, verify() checks the smallest job that contains the ranks that meshes,
//   roots and peers name. If the program depends on the number of ranks, verify() checks the three
//   smallest such jobs.
// - If the sizes are known, they are used. Otherwise symbols have their defaults. Symbols without a
//   default get the first of a few small values for which all views exist.
// - If the job is known but the sizes are not, verify() may find no sizes for which all views of
//   this job exist. verify() then checks the smallest jobs instead.
void verify(const Program& program, const ActualJob& actual = {});

// Makes the same checks as verify(), except that buffers need not be freed or returned. Use this
// function for programs on which the pass insert_frees (host/passes/insert_frees.h) has not run
// yet.
void verifyOrder(const Program& program);

// Says whether a program must free its buffers. No: the pass insert_frees has not run yet.
enum class BuffersAreFreed : bool { No, Yes };

// Checks the unrolled program of one rank for races and wrong lifetimes. Two accesses conflict if
// they are to overlapping bytes of one buffer and at least one of them is a write. Three things
// determine the order of two accesses: a common stream, a RecordEvent with a WaitEvent, or a token
// with a Wait. Throws UserError that names the instruction and the buffer for
// - a race: two conflicting accesses without an order
// - an access that conflicts with a posted operation before the Wait on its token
// - an access that is not ordered after the Allocate or before the Free; a second Free
// - a Free of an input or output; a write to an input that is not also an output
// - work or a post that is not ordered before the end of stream 0
// - a buffer that is neither freed nor returned, unless `freed` is No
void checkRaces(const Program& program, const Unrolled& unrolled,
                BuffersAreFreed freed = BuffersAreFreed::Yes);

}  // namespace heddle::host
