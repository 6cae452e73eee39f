#pragma once

#include <optional>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// The top-level instructions that name a slot, as indices into Program::body.
struct SlotUses {
  std::vector<size_t> at;       // instructions that name the slot; ascending, without repeats
  std::vector<size_t> defined;  // instructions that define the slot
  // True if a For or If names the slot, or if the slot is an input or output of the program.
  bool nested = false;
};

// Returns the uses of each slot.
IdVector<SlotId, SlotUses> slotUsesOf(const Program& program);

// Returns the order of axes in which the valid elements of the slot are contiguous in memory. The
// order is known if
//   one top-level Allocate defines the slot, or
//   the slot is a reshape of such a slot in row-major order.
// The allocation may be larger than the valid elements. Returns nullopt if the order is unknown.
std::optional<AxisOrder> denseOrderOf(const Program& program,
                                      const IdVector<SlotId, SlotUses>& uses, SlotId id);

}  // namespace heddle::host
