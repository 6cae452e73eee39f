#pragma once

#include "host/program/program.h"

namespace heddle::host {

// A value is an input tensor, or what is stored in the memory of one Allocate. For each Allocate at
// the top level, the pass finds old values whose memory the new value may take, and lists their
// slots in Allocate::reuse. An old value must be dead: every access to it, on all streams and
// by all collectives, happens before each access to the new value. Exception: a kernel that reads
// the old value may write the new one, if both have the same type, padding and memory order, and
// the kernel may work in place (codegen/plan/in_place.h).
//
// A list contains up to kMostDonated inputs. A run takes their memory only if the caller donates
// them. At most one tensor that the program allocates follows them. Every tensor of the list has as
// many bytes as the new value, on every rank and for all sizes.
// - Each allocated tensor is in at most one list. It is not listed if the program allocates new
//   memory between the Free of the tensor and the Allocate of the new value. The tensor would
//   otherwise stay allocated beside the new memory, and the peak memory of a run could grow.
// - An input is offered to the outputs of the program before it is offered to temporaries. The
//   reason: the memory of an output outlives the run, so an output that takes the memory of an
//   input saves memory for longer.
// - An input is in no list if an output is a view of it or is stored in it, or if an instruction
//   redefines its slot.
//
// The pass changes only these lists. An Allocate whose list has no available tensor gets new
// memory, and the Free of a buffer that was reused has no effect. Run the pass after insertFrees().
// A program does not change if it already has such lists, or if its author has ordered one of its
// instructions (Item::opaque in host/passes/analysis/buffer_accesses.h).
Program reuseBuffers(Program program);

// Removes the lists of a program whose author has not ordered its streams (isUnordered() in
// host/passes/analysis/buffer_accesses.h). Passes may move instructions of such a program, so old
// lists may become wrong. Run this before all passes that move instructions, but after
// inlineCalls(): isUnordered() is false for a program with a Call.
void forgetReuses(Program& program);

inline constexpr size_t kMostDonated = 4;

}  // namespace heddle::host
