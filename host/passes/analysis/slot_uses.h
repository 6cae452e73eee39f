#pragma once

#include <optional>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Where a slot is named: positions in the body, and whether the slot could be another buffer there.
struct SlotUses {
  std::vector<size_t> at;  // ascending, without repeats
  std::vector<size_t> defined;
  bool nested = false;  // named within a For or If, or an input or output of the program
};

// By SlotId.
std::vector<SlotUses> slotUsesOf(const Program& program);

// The order in which the slot's valid elements lie behind each other, where the program alone
// tells: allocated once, at the top, or regrouped from such a slot in row-major order; its
// allocation may be larger than what is valid. Else nullopt.
std::optional<AxisOrder> denseOrderOf(const Program& program, const std::vector<SlotUses>& uses,
                                      SlotId id);

}  // namespace heddle::host
