#pragma once

#include <string>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Returns a list of values that are known only when a run of the unrolled program starts, one line
// for each value:
// - the addresses of the inputs, and of views whose beginning depends on a late input
//   (host/unroll/late_scalars.h),
// - the scalar inputs, for example seeds of random numbers. If a scalar decides sizes or offsets,
//   its line says for which values the plan is valid, or that a new value needs a new plan. An
//   input tensor whose value decides sizes or offsets is listed here too,
// - the outputs: whether the output is in an allocation of the run or in an input, and where it
//   begins there. The line of a scalar output, or of an output that only other ranks hold, says so
//   instead.
// The list omits the temporaries, which the run allocates. Sizes, kernels and steps are fixed in
// the plan (host/plan/plan.h). bindRun() (host/run/bind_run.h) writes the addresses and scalars of
// inputs.
std::string describeLateValues(const Program& program, const Unrolled& unrolled);

}  // namespace heddle::host
