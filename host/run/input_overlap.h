#pragma once

#include "host/run/run_state.h"

namespace heddle::host {

// Checks the inputs of a run that writes some of them in place, or to which some are donated.
// Throws UserError if the memory of such an input overlaps that of another input; the message names
// both. The memory of an input is its complete allocation, with padding. If the addresses equal
// those of the last accepted run of this state, the function only compares them.
// Requires that state.pointers has the addresses of the inputs.
void checkInputOverlap(const Plan& plan, RunState& state);

}  // namespace heddle::host
