#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/job/communicators.h"
#include "host/plan/bind_inputs.h"
#include "host/plan/kernel_store.h"
#include "host/plan/plan.h"
#include "host/plan/run_key.h"
#include "host/plan/stored_segment.h"
#include "host/program/program.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Interprets a host program (host/program/program.h) on one rank, in two phases. prepare() computes
// everything that depends on neither the addresses nor the scalars of a run, and stores it in a
// plan. Exception: scalars that decide sizes are part of the plan. execute() issues one run of a
// plan. The evaluator holds no state of a run, so several threads may call its functions at the
// same time.
class HostIrEvaluator {
 public:
  // `program` must not contain Call instructions (inlineCalls() replaces them), and the sizes of
  // its meshes must be known. `choices` (PlanTarget::choices) and all objects that are passed by
  // reference must outlive the evaluator.
  HostIrEvaluator(const Program& program, Device& device, const Communicators& communicators,
                  KernelStore& kernels, AlgorithmAgreement& algorithms, int64_t rank, int64_t ranks,
                  bool check_numerics, const KernelChoices* choices);

  // Checks the tensors and creates a plan for them (host/plan/plan.h). Throws the errors of
  // bindInputs(), reuseOf(), givenTensors(), unroll() and makePlan().
  //   check_races   true: throws UserError if checkRaces() (host/verify/check_races.h) finds a race
  //   stream        the stream of the coming run; library algorithms may be timed on it
  std::shared_ptr<const Plan> prepare(const RunTensors& tensors, bool check_races,
                                      Stream stream) const;

  // Compiles the kernels that a plan for these tensors needs. A later prepare() finds their images.
  // Needs no other rank, and loads no kernels on the device. May throw the errors of prepare(), but
  // does not check for races. Does nothing if the device has no compiler.
  void compileKernels(const RunTensors& tensors) const;

  // Issues every step of the plan on state.streams.
  // Before: state.prepare() and then bindRun() (host/run/bind_run.h) were called for the plan.
  //         `state` therefore contains the pointers of the inputs and preallocated outputs, and the
  //         scalar inputs.
  // After:  state.pointers contains the addresses of the output buffers. state.owned is true for
  //         each buffer that the run still holds.
  // Errors: a UserError or InternalError names the instruction. Before execute() throws, it frees
  //         all memory of the run in stream order. If enqueued work fails later, the device reports
  //         the error to Completion::errors of state.completion.
  void execute(const Plan& plan, RunState& state, Allocator& allocator) const;

 private:
  UnrollRequest requestFor(const RunTensors& tensors, const GivenTensors& given) const;
  PlanTarget target(Stream stream) const;

  const Program& program_;
  Device& device_;
  const Communicators& communicators_;
  KernelStore& kernels_;
  AlgorithmAgreement& algorithms_;
  int64_t rank_;
  int64_t ranks_;
  const bool check_numerics_;           // ExecutableOptions::check_numerics
  const KernelChoices* const choices_;  // PlanTarget::choices
  const InputFacts inputs_;
  const size_t streams_;                                  // Program::streams()
  const IdVector<StreamId, bool> communication_streams_;  // Program::communicationStreams()
  // The result of KernelStore::segmentOf() for each kernel of the program. Empty if the device has
  // no compiler.
  IdVector<KernelId, std::shared_ptr<StoredSegment>> segments_;
};

}  // namespace heddle::host
