#include "host/run/evaluator.h"

#include "host/plan/bind_inputs.h"
#include "host/plan/plan.h"
#include "host/plan/run_key.h"
#include "host/run/issue.h"
#include "host/unroll/preallocated_layouts.h"
#include "host/verify/check_races.h"
#include "ir/base/check.h"

namespace heddle::host {

HostIrEvaluator::HostIrEvaluator(const Program& program, Device& device,
                                 const Communicators& communicators, KernelStore& kernels,
                                 AlgorithmAgreement& algorithms, int64_t rank, int64_t ranks,
                                 bool check_numerics, const KernelChoices* choices)
    : program_(program),
      device_(device),
      communicators_(communicators),
      kernels_(kernels),
      algorithms_(algorithms),
      rank_(rank),
      ranks_(ranks),
      check_numerics_(check_numerics),
      choices_(choices),
      inputs_(program),
      streams_(program.streams()),
      communication_streams_(program.communicationStreams()) {
  if (program.kernels.empty() || device.compiler() == nullptr) return;
  for (const Kernel& kernel : program.kernels) {
    segments_.push_back(kernels.segmentOf(kernel.segment));
  }
}

UnrollRequest HostIrEvaluator::requestFor(const RunTensors& tensors,
                                          const GivenTensors& given) const {
  UnrollRequest request = bindInputs(program_, inputs_, tensors.inputs, rank_, ranks_);
  request.reuse = reuseOf(tensors);
  request.layouts = preallocatedLayouts(program_, given.preallocated);
  return request;
}

PlanTarget HostIrEvaluator::target(Stream stream) const {
  return {device_,  communicators_,         kernels_,        algorithms_, ranks_, stream, segments_,
          streams_, communication_streams_, check_numerics_, choices_};
}

std::shared_ptr<const Plan> HostIrEvaluator::prepare(const RunTensors& tensors, bool check_races,
                                                     Stream stream) const {
  const GivenTensors given = givenTensors(program_, tensors);
  const UnrollRequest request = requestFor(tensors, given);
  const Unrolled unrolled = unroll(program_, request);
  if (check_races) checkRaces(program_, unrolled);
  return makePlan(program_, unrolled, request, given, target(stream));
}

void HostIrEvaluator::compileKernels(const RunTensors& tensors) const {
  if (segments_.empty()) return;
  const GivenTensors given = givenTensors(program_, tensors);
  const UnrollRequest request = requestFor(tensors, given);
  host::compileKernels(program_, unroll(program_, request), request, given, target(nullptr));
}

void HostIrEvaluator::execute(const Plan& plan, RunState& state, Allocator& allocator) const {
  Issuer issuer(plan, state, device_, allocator);
  const auto instruction = [&] { return state.completion->resources->text(issuer.instruction()); };
  // A ReadBackStep waits for work that was issued earlier, and throws the error of this work. The
  // text of such an error already names the instruction that failed.
  const auto has_instruction = [&] { return state.completion->errors.failed(); };
  try {
    issuer.run();
  } catch (const UserError& e) {
    issuer.freeAll();
    if (has_instruction()) throw;
    throw withText(e, instruction() + ": " + e.what());
  } catch (const InternalError& e) {
    issuer.freeAll();
    if (has_instruction()) throw;
    throw InternalError(instruction() + ": " + e.what());
  } catch (...) {
    issuer.freeAll();
    throw;
  }
}

}  // namespace heddle::host
