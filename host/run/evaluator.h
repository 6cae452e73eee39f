#pragma once

#include <memory>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/job/communicators.h"
#include "host/plan/kernel_store.h"
#include "host/plan/plan.h"
#include "host/program/program.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Interprets a host program on one rank, in two phases. prepare() computes everything that depends
// only on sizes, and execute() issues one run. The evaluator holds no state of a run, so several
// threads may call both.
class HostIrEvaluator {
 public:
  // `program` must contain no Call (see inlineCalls()), and its meshes must have their sizes in the
  // job. All arguments must outlive the evaluator.
  HostIrEvaluator(const Program& program, Device& device, const Communicators& communicators,
                  KernelStore& kernels, AlgorithmAgreement& matmuls, int64_t rank, int64_t ranks);

  // Checks the inputs and creates a plan for them. Errors are those of bindInputs() and makePlan().
  //   preallocated  see makePlan()
  //   check_races   true: UserError if the unrolled program has a race
  //   stream        the stream of the coming run, on which library algorithms may be timed
  std::shared_ptr<const Plan> prepare(const std::vector<Argument>& inputs,
                                      const std::vector<std::optional<TensorDesc>>& preallocated,
                                      bool check_races, Stream stream) const;

  // Issues every step of the plan on state.streams.
  // Before: `state` is prepared for the plan. It holds the pointers of inputs and preallocated
  //         outputs, and the scalar inputs.
  // After:  state.pointers holds the buffers of the outputs, and state.owned says which buffers the
  //         run still holds.
  // Errors: an exception names the instruction; all memory that the run allocated has been freed in
  //         stream order. Errors of work that runs later are reported to state.completion.
  void execute(const Plan& plan, RunState& state, Allocator& allocator) const;

 private:
  const Program& program_;
  Device& device_;
  const Communicators& communicators_;
  KernelStore& kernels_;
  AlgorithmAgreement& matmuls_;
  int64_t rank_;
  int64_t ranks_;
};

}  // namespace heddle::host
