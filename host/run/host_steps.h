#pragma once

#include <vector>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// The steps that run code on the host. Scalar arithmetic runs at once, the others in stream order.
// All of them may allocate memory, because none is part of a fast path.

// Returns the value of an op on scalar registers, with the rounding of the reference evaluator.
Scalar applyToScalars(const ApplyStep& step, const IdVector<RegisterId, Scalar>& registers);

// Evaluates a segment in place of a generated kernel. Its tensors must be in host memory. The plan
// of `reference` must outlive the work.
void enqueueReference(const Plan::Reference& reference, const RunState& state, Device& device,
                      Stream stream, const Issue& issue);
// Fails the run if the tensor contains NaN or an infinity. The error names slot and element.
void enqueueCheck(const Plan::Watched& watched, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);
// Prints name, type and the first 8 values of a tensor, or the value of a scalar, to stdout.
void enqueuePrint(const Plan::Watched& watched, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);

}  // namespace heddle::host
