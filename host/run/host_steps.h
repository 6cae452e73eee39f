#pragma once

#include <vector>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// The steps that run code on the host: scalar arithmetic at once, the others in stream order. They
// may allocate: none of them is part of a fast path.

// The value of an op on scalar registers, rounded to its dtype as the reference evaluator does.
Scalar applyToScalars(const ApplyStep& step, const std::vector<Scalar>& registers);

// Evaluates a segment in place of a generated kernel; host memory.
void enqueueReference(const Plan::Reference& reference, const RunState& state, Device& device,
                      Stream stream, const Issue& issue);
// Fails the run when the tensor holds NaN or inf, naming slot and element.
void enqueueCheck(const Plan::Watched& watched, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);
// Name, type and first values of a tensor, or the value of a scalar, on stdout.
void enqueuePrint(const Plan::Watched& watched, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);

}  // namespace heddle::host
