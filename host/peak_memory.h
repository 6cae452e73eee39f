#pragma once

#include <cstdint>
#include <set>

#include "host/plan/plan.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Returns the largest number of bytes that the steps hold at once for temporaries and outputs. The
// buffers in `of_caller` do not count. The workspace of kernels and library calls does not count
// either. If only the run decides an If, both of its bodies count, as if the run executed one after
// the other.
int64_t peakOf(const Unrolled& unrolled, const std::set<BufferId>& of_caller = {});

// Returns the largest number of bytes that a run of the plan would hold at once for temporaries and
// outputs if no value reused the memory of another value (Allocate::reuse). Each Allocate then
// creates a buffer of its own, which exists until its Free or until the end of the program. Buffers
// whose memory is a preallocated tensor do not count. If only the run decides an If, both of its
// bodies count, as if the run executed one after the other. `program` is the program of the plan.
// The function unrolls the program again, which takes about as long as a new plan.
int64_t peakWithoutReuse(const Program& program, const Plan& plan);

}  // namespace heddle::host
