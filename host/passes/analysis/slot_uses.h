#pragma once

#include <optional>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// The instructions that name a slot (a register of a host program), as indices into Program::body.
// A For or If counts as an instruction that names the slots in its bodies.
struct SlotUses {
  std::vector<size_t> at;       // instructions that name the slot; ascending, without repeats
  std::vector<size_t> defined;  // instructions that define the slot; ascending, one per definition
  // true: an instruction in the body of a For or If names the slot, or the slot is an input or
  // output of the program.
  bool nested = false;
};

IdVector<SlotId, SlotUses> slotUsesOf(const Program& program);

// Returns the memory order of the axes of the slot, outermost axis first, in the two cases below.
// The elements of the slot are then contiguous in memory except for padding. Returns nullopt in all
// other cases. In both cases, one instruction at the top level defines the slot, and no other
// instruction defines it:
// - an Allocate
// - an Alias of the kind Reshape. Its input is a row-major slot of the first case, or a slot of
// this
//   second case.
std::optional<AxisOrder> denseOrderOf(const Program& program,
                                      const IdVector<SlotId, SlotUses>& uses, SlotId id);

}  // namespace heddle::host
