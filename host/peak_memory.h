#pragma once

#include <cstdint>

#include "host/plan/plan.h"

namespace heddle::host {

// Returns the largest number of bytes that a run of the plan would hold at once for temporaries and
// outputs if no value reused the memory of another value (Allocate::reuse). Each buffer
// is then allocated by its own Allocate and freed by its own Free, in the order of the
// instructions. Buffers in preallocated tensors do not count. If the branch of an If is known only
// at run time, both of its bodies count. `program` is the program of the plan. The function unrolls
// the program again, which takes about as long as a new plan.
int64_t peakWithoutReuse(const Program& program, const Plan& plan);

}  // namespace heddle::host
