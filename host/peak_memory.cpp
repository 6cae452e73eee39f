#include "host/peak_memory.h"

#include <algorithm>
#include <variant>

#include "host/program/instructions.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

int64_t peakOf(const Unrolled& unrolled, const std::set<BufferId>& of_caller) {
  std::set<BufferId> live;
  int64_t held = 0, peak = 0;
  for (const UnrolledStep& step : unrolled.steps) {
    if (step.instruction == nullptr) continue;
    // Only Allocate and Free change the amount of memory in use.
    const bool allocates = std::holds_alternative<Allocate>(step.instruction->op);
    if (!allocates && !std::holds_alternative<Free>(step.instruction->op)) continue;
    const BufferId buffer = (allocates ? step.outputs : step.inputs).front().buffer;
    if (of_caller.contains(buffer)) continue;
    // An Allocate may reuse a buffer that is still live.
    const bool changes = allocates ? live.insert(buffer).second : live.erase(buffer) > 0;
    if (changes) held += (allocates ? 1 : -1) * unrolled.buffers[buffer].bytes;
    peak = std::max(peak, held);
  }
  return peak;
}

int64_t peakWithoutReuse(const Program& program, const Plan& plan) {
  UnrollRequest request = plan.request;
  request.reuse = {};
  request.reuse.enabled = false;
  const Unrolled unrolled = unroll(program, request);
  std::set<BufferId> of_caller;  // buffers that the caller's preallocated tensors replace
  for (const Plan::Preallocated& output : plan.preallocated) {
    const bool is_direct = plan.buffers.has(bufferOf(output.pointer));
    const View& view = unrolled.outputs[output.output];
    if (is_direct && view.buffer.valid()) of_caller.insert(view.buffer);
  }
  return peakOf(unrolled, of_caller);
}

}  // namespace heddle::host
