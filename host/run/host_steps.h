#pragma once

#include <vector>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// The steps of a plan (host/plan/plan.h) that run code on the host. Scalar arithmetic runs
// immediately. All other steps run in stream order. They may allocate memory, because they are not
// meant to be fast.

// Returns the value of an op on scalar registers. Rounds it like the reference evaluator
// (ir/reference/reference.h).
Scalar applyToScalars(const ApplyStep& step, const IdVector<RegisterId, Scalar>& registers);

// Computes a kernel on the host with the reference evaluator, for kernels without generated code.
// The tensors must be in host memory. The Plan that contains `reference` must exist until the
// enqueued work has ended.
void enqueueReference(const Plan::Reference& reference, const RunState& state, Device& device,
                      Stream stream, const Issue& issue);
// Fails the run if the tensor contains NaN or infinity. The error names the program's variable
// (slot) and the element.
void enqueueCheck(const Plan::NamedOperand& named, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);
// Prints name, type and the first 8 values of a tensor, or the value of a scalar, to stdout.
void enqueuePrint(const Plan::NamedOperand& named, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);

// Counts the elements that are NaN or infinite, and adds the counts to the record of the run
// (Completion::numerics). `id` is the index of the inspection in the plan. `after`: InspectStep.
void enqueueInspection(const Plan::Inspection& inspection, int32_t id, bool after,
                       const RunState& state, Device& device, Stream stream, const Issue& issue);

}  // namespace heddle::host
