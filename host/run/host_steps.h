#pragma once

#include <vector>

#include "host/plan/plan.h"
#include "host/run/run_state.h"

namespace heddle::host {

// These functions execute the steps of a plan (host/plan/plan.h) that compute on the host.
// applyToScalars() computes immediately. All other functions enqueue work on a stream. They may
// allocate memory, because these steps are not meant to be fast.

// Returns the value of an op on scalar registers. Rounds it like the reference evaluator
// (ir/reference/reference.h). Throws UserError if the op is not defined for the type of its
// operands.
Scalar applyToScalars(const ApplyStep& step, const IdVector<RegisterId, Scalar>& registers);

// Enqueues a task that computes a kernel with the reference evaluator, for devices without a
// compiler. The tensors must be in host memory. The Plan that contains `reference` must exist until
// the enqueued work has ended.
void enqueueReference(const Plan::Reference& reference, const RunState& state, Device& device,
                      Stream stream, const Issue& issue);
// Enqueues a check that makes the run fail if the tensor contains NaN or infinity. The error names
// the slot and the first such element.
void enqueueCheck(const Plan::NamedOperand& named, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);
// Enqueues a task that prints to stdout: name, dtype, sizes and the first 8 values of a tensor, or
// name and value of a scalar.
void enqueuePrint(const Plan::NamedOperand& named, const RunState& state, Device& device,
                  Stream stream, const Issue& issue);

// Counts the elements that are NaN or infinite in the tensors and scalars of an inspection, and
// adds the counts to the record of the run (Completion::numerics). Enqueues one task per tensor;
// scalars are counted at once. `id` is the index of the inspection in the plan. If `after` is
// false, inspects what the instruction will read; otherwise what it has written. Of the buffers of
// an all-to-all-v, inspects only the elements that are sent or received.
void enqueueInspection(const Plan::Inspection& inspection, int32_t id, bool after,
                       const RunState& state, Device& device, Stream stream, const Issue& issue);

}  // namespace heddle::host
