#pragma once

#include <optional>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// The instructions that name a slot (register of a host program), as indices into Program::body. If
// an instruction in the body of a For or If names the slot, the index is that of the For or If.
struct SlotUses {
  std::vector<size_t> at;       // instructions that name the slot; ascending, without repeats
  std::vector<size_t> defined;  // instructions that define the slot
  // true: an instruction in a body names the slot, or the slot is an input or output of the
  // program.
  bool nested = false;
};

// Returns the uses of each slot.
IdVector<SlotId, SlotUses> slotUsesOf(const Program& program);

// Returns the memory order of the axes of the slot, outermost axis first, if the elements of the
// slot are contiguous in memory except for padding. Returns nullopt if the order is unknown. It is
// known in two cases:
//   One Allocate at the top level defines the slot.
//   The slot is a reshape of a slot that one Allocate at the top level defines, in row-major order.
std::optional<AxisOrder> denseOrderOf(const Program& program,
                                      const IdVector<SlotId, SlotUses>& uses, SlotId id);

}  // namespace heddle::host
