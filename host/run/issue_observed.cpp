// This file contains the members of Issuer that mark a step for profilers, record it in a run
// profile, or inject a fault.
#include <algorithm>

#include "host/run/issue.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

class ProfilerRange {
 public:
  ProfilerRange(Device& device, const char* text) : device_(device) { device_.beginRange(text); }
  ~ProfilerRange() { device_.endRange(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  Device& device_;
};

// The first memory that the instruction of a step writes. A fault of the kind Corrupt changes it.
struct Written {
  Address address;
  int64_t bytes = 0;
};

Written writtenBy(const Plan& plan, size_t step) {
  if (!writesData(plan.steps[step])) return {};
  const Plan::StepNote& note = plan.notes[step];
  if (note.output_bytes > 0) return {note.output, note.output_bytes};
  // The instruction GroupEnd posts all sends and receives of a group. GroupEnd names no slot, so
  // Plan::notes contains no output for it.
  const auto* post = std::get_if<CollectiveStep>(&plan.steps[step]);
  for (int32_t i = 0; post != nullptr && i < post->operations; ++i) {
    const size_t at = post->first + i;
    const Address address = plan.operation_addresses[at].recv;
    const comm::Operation& operation = plan.operations[at];
    if (address.pointer.valid()) return {address, operation.count * sizeOf(operation.dtype)};
  }
  return {};
}

// Returns whether the step is the last step of its instruction that writes data. An instruction may
// have several steps that write, such as the stages of a kernel.
bool isLastOf(const Plan& plan, size_t step) {
  if (!writesData(plan.steps[step])) return false;
  for (size_t next = step + 1; next < plan.steps.size(); ++next) {
    if (plan.instruction_of[next] != plan.instruction_of[step] ||
        plan.notes[next].occurrence != plan.notes[step].occurrence) {
      break;
    }
    if (writesData(plan.steps[next])) return false;
  }
  return true;
}

}  // namespace

void Issuer::issueObserved(size_t step) {
  if (issue_.instruction < 0) return std::visit(*this, plan_.steps[step]);
  const StreamId on = plan_.notes[step].stream;
  const auto& texts = state_.completion->resources->texts();
  const ProfilerRange range(device_, texts[issue_.instruction].c_str());
  const InjectedFault* fault = state_.fault;
  const bool faulty = fault != nullptr && fault->instruction == issue_.instruction;
  if (faulty) injectBeforeStep(on.valid() ? on : kCallerStream);
  RunProfile* profile = state_.profile;
  const bool timed = profile != nullptr && on.valid() && device_.kind() == DeviceKind::Cuda;
  const int64_t begin = profile == nullptr ? 0 : RunProfile::now();
  if (timed) profile->beginOnDevice(issue_.step, stream(on));
  std::visit(*this, plan_.steps[step]);
  if (timed) profile->endOnDevice(stream(on));
  if (profile != nullptr) profile->addIssue(issue_.step, begin, RunProfile::now());
  if (faulty) injectAfterStep(step);
}

// Injects the fault before the step, but only once per run, even if the instruction is in a loop.
// Does nothing for a fault of the kind Corrupt, which injectAfterStep() injects.
void Issuer::injectBeforeStep(StreamId on) {
  if (injected_ || state_.fault->kind == InjectedFault::Kind::Corrupt) return;
  injected_ = true;
  const std::shared_ptr<RunResources> resources = state_.completion->resources;
  injectBefore(*state_.fault, device_, stream(on), issue_,
               [resources] { return resources->job.failed(); });
}

void Issuer::injectAfterStep(size_t step) {
  if (state_.fault->kind != InjectedFault::Kind::Corrupt || !isLastOf(plan_, step)) return;
  const Written written = writtenBy(plan_, step);
  if (written.bytes == 0) return;
  const StreamId noted = plan_.notes[step].stream;
  const StreamId on = noted.valid() ? noted : kCallerStream;
  injectAfter(*state_.fault, device_, at(written.address), written.bytes, stream(on), issue_);
}

void checkFault(const InjectedFault& fault, const Plan& plan, const RunResources& resources) {
  bool issued = false;
  bool writes = false;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    if (plan.instruction_of[step] != fault.instruction) continue;
    issued = true;
    writes = writes || writtenBy(plan, step).bytes > 0;
  }
  HEDDLE_USER_CHECK(static_cast<size_t>(fault.instruction) < resources.texts().size(),
                    "--inject: there is no instruction {}, the program has {}", fault.instruction,
                    resources.texts().size());
  HEDDLE_USER_CHECK(issued, "--inject: rank {} issues nothing for {}", fault.rank,
                    resources.text(fault.instruction));
  HEDDLE_USER_CHECK(writes || fault.kind != InjectedFault::Kind::Corrupt,
                    "--inject: {} writes nothing on rank {} that could be corrupted",
                    resources.text(fault.instruction), fault.rank);
}

}  // namespace heddle::host
