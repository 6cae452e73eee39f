#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Per value and logical axis: whether the user has asked for it to be sharded, as he has where he
// wrote so, and where that leads to as results follow their operands. What is sharded elsewhere,
// because its readers are, could as well not be: it must not ask sizes for what the user does not.
// Values of fusions without a reshape, the only op for which it matters, have empty lists.
IdVector<ValueId, std::vector<bool>> userShardedAxes(const Fusion& fusion);

}  // namespace heddle
