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

// Returns the memory order of the axes of the slot, outermost axis first, if its elements are
// certainly contiguous in memory except for padding. This is so if exactly one instruction defines
// the slot, and this instruction is at the top level and is one of these:
// - an Allocate
// - an Alias of the kind Reshape, whose input is row-major and fulfils the same conditions
// Returns nullopt in all other cases.
std::optional<AxisOrder> denseOrderOf(const Program& program,
                                      const IdVector<SlotId, SlotUses>& uses, SlotId id);

}  // namespace heddle::host
