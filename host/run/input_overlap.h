#pragma once

#include "host/run/run_state.h"

namespace heddle::host {

// Checks the inputs that a run writes in place, and the donated inputs. Throws UserError if such an
// input shares an element in memory with another input. Also throws UserError if their memory
// ranges overlap, and the strides do not show that they share no element. The message names both
// inputs. The memory of an input is its complete allocation, with padding. If the addresses equal
// those of the last accepted run of this state, the function only compares them. Requires that
// state.pointers has the addresses of the inputs.
void checkInputOverlap(const Plan& plan, RunState& state);

}  // namespace heddle::host
