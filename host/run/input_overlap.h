#pragma once

#include "host/run/run_state.h"

namespace heddle::host {

// Checks the inputs that a run writes in place, and the donated inputs. Throws UserError if such an
// input shares an element in memory with another input. Also throws UserError if the memory ranges
// of the two inputs overlap, and the strides do not show that they share no element. The message
// names both inputs. The memory of an input is its complete allocation, with padding. If all
// addresses equal those that the function has accepted last for this plan and `state`, it checks
// nothing else. Requires that state.pointers has the addresses of the inputs.
void checkInputOverlap(const Plan& plan, RunState& state);

}  // namespace heddle::host
