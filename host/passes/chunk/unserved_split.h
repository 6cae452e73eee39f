#pragma once

#include <string>

#include "host/program/program.h"

namespace heddle::host {

// Explains why no match (OverlapMatch of host/passes/chunk/overlap_patterns.h) uses the stream
// split of a slot, such as `stream(0: 4)`. Finds the first matrix product that computes the slot or
// reads it, directly or through collectives, views and kernels with one operand. Returns a text
// that lists the collectives that move the operands and the result of this matrix product, and
// names a remedy. Returns an empty text if there is no such matrix product.
//
// The text mentions the sizes, because other sizes may need other collectives: if a fusion does not
// give a sharding, heddle chooses the sharding that moves the fewest bytes at these sizes.
std::string explainUnserved(const Program& program, SlotId slot);

}  // namespace heddle::host
