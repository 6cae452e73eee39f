#pragma once

#include "host/run/run_state.h"

namespace heddle::host {

// Checks the inputs that a run writes in place, and the donated inputs. Throws UserError if the
// memory range of such an input overlaps that of another input, unless the strides show that the
// two inputs share no element. The message names both inputs. The memory of an input is its
// complete allocation, with padding. If all addresses equal those of the last accepted call for
// this plan and `state`, the function returns at once. Requires that state.pointers has the
// addresses of the inputs.
void checkInputOverlap(const Plan& plan, RunState& state);

}  // namespace heddle::host
