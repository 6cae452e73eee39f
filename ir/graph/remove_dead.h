#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards every expression is needed by an output. Inputs stay, used or not: they are the
// signature. Here so that no dead value pulls at the shardings of live ones.
Fusion removeDead(const Fusion& fusion);

}  // namespace heddle
