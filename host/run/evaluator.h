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

// Interprets a host program on one rank, in two steps: prepare() settles everything that sizes
// decide, execute() issues one run. Holds no state of a run; both may be called from several
// threads.
class HostIrEvaluator {
 public:
  // `program` has no Call (inlineCalls) and meshes of the size of the job; all outlive the
  // evaluator.
  HostIrEvaluator(const Program& program, Device& device, const Communicators& communicators,
                  KernelStore& kernels, AlgorithmAgreement& matmuls, int64_t rank, int64_t ranks);

  // `check_races`: throws when the unrolled program has a race. `preallocated`: see makePlan().
  // `stream`: of the run that comes, where library algorithms may be timed.
  std::shared_ptr<const Plan> prepare(const std::vector<Argument>& inputs,
                                      const std::vector<std::optional<TensorDesc>>& preallocated,
                                      bool check_races, Stream stream) const;

  // Issues every step on state.streams. `state` was prepared for the plan, and holds the pointers
  // of inputs and preallocated outputs and the scalar inputs. Afterwards state.pointers holds the
  // outputs' buffers, and state.owned tells which buffers the run still holds. On an exception
  // everything that the run allocated has been given back in stream order. Errors of work that runs
  // later go to state.completion.
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
