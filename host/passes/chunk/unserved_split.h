#pragma once

#include <string>

#include "host/program/program.h"

namespace heddle::host {

// Explains why no overlap pattern match uses the stream split of a slot. Returns the matrix product
// that computes or reads the slot, the collectives that move its operands and its result, and a
// remedy. The shardings that are not given in a fusion are chosen so that they move the fewest
// bytes. So the collectives depend on the sizes, and a stream split may fit at some sizes only.
// Returns an empty text if no matrix product computes or reads the slot, also not through a move.
std::string explainUnserved(const Program& program, SlotId slot);

}  // namespace heddle::host
