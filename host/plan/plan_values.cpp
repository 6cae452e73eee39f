// The members of PlanBuilder for tensors without axes (0-d) that are passed in host memory. run()
// reads the element of such a tensor and writes it to the argument blocks of kernels. If some
// reader needs the element in device memory, a kernel writes it to a buffer at the start of the
// run.
#include <algorithm>

#include "host/plan/by_value_inputs.h"
#include "host/plan/plan_builder.h"
#include "ir/base/check.h"

namespace heddle::host {

// Gives each 0-d input in host memory a register, and finds out which of these inputs need a
// buffer.
void PlanBuilder::bindValues() {
  for (BufferId id : unrolled_.buffers.ids()) {
    const Buffer& buffer = unrolled_.buffers[id];
    if (buffer.origin != Buffer::Origin::Input || !isByValue(buffer.input)) continue;
    const DType dtype = slot(program_.inputs.at(buffer.input)).tensor.dtype;
    const RegisterId scalar(plan_->registers++);
    plan_->value_inputs.push_back({scalar, buffer.input, dtype});
    values_.emplace(id, HostValue{scalar, dtype, false});
  }
  if (values_.empty()) return;
  for (const UnrolledStep& step : unrolled_.steps) {
    if (step.instruction != nullptr) findValueUses(step);
  }
  for (const View& output : unrolled_.outputs) {
    if (HostValue* value = valueOf(output)) value->in_memory = true;
  }
}

// Returns the 0-d input in host memory to which a view refers. Returns nullptr if the view refers
// to another buffer.
PlanBuilder::HostValue* PlanBuilder::valueOf(const View& view) {
  auto found = values_.find(view.buffer);
  return found == values_.end() ? nullptr : &found->second;
}

void PlanBuilder::findValueUses(const UnrolledStep& step) {
  const Op& op = step.instruction->op;
  // Alias and Free do not read the memory. Of all readers, only kernels take the element by value.
  if (std::holds_alternative<Alias>(op) || std::holds_alternative<Free>(op)) return;
  const auto* launch = std::get_if<LaunchKernel>(&op);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    HostValue* value = valueOf(step.inputs[i]);
    if (value == nullptr) continue;
    const bool as_argument =
        launch != nullptr && mayComeByValue(program_.kernels.at(launch->kernel).segment, i);
    value->in_memory = value->in_memory || !as_argument;
  }
  for (const View& view : step.outputs) {
    HEDDLE_USER_CHECK(valueOf(view) == nullptr,
                      "instruction {} writes to input %{}, which is in host memory", step.index,
                      unrolled_.buffers[view.buffer].name);
  }
}

// Emits kernels that write the elements to buffers. The kernels run on stream 0, before the other
// streams start. The run frees these buffers at its end, unless they become outputs.
void PlanBuilder::storeValues() {
  for (auto& [buffer, value] : values_) {
    if (!value.in_memory) continue;
    emit(AllocateStep{buffer, kCallerStream, plan_->buffers[buffer].bytes});
    own_segments_.push_back(scalarStoreSegment(value.dtype));
    emitLaunch({&own_segments_.back(),
                {{Address{}, ownDesc({}), value.scalar}},
                {{Address{pointerTo(buffer), 0}, ownDesc(denseDesc(value.dtype, {}))}},
                kCallerStream});
  }
}

// Passes the 0-d operands in host memory to the kernel of the launch as scalars, where possible.
void PlanBuilder::passValues(Launch& launch) {
  if (values_.empty()) return;
  std::vector<bool> by_value(launch.inputs.size(), false);
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    LaunchOperand& operand = launch.inputs[i];
    auto found = values_.find(bufferOf(operand.address.pointer));
    if (operand.scalar.valid() || found == values_.end()) continue;
    if (!mayComeByValue(*launch.segment, i)) continue;
    by_value[i] = true;
    operand = {Address{}, ownDesc({}), found->second.scalar};
  }
  if (std::find(by_value.begin(), by_value.end(), true) == by_value.end()) return;
  auto [rewritten, is_new] = by_value_segments_.try_emplace({launch.segment, by_value}, nullptr);
  if (is_new) {
    own_segments_.push_back(withValues(*launch.segment, by_value));
    rewritten->second = &own_segments_.back();
  }
  launch.segment = rewritten->second;
  launch.stored = nullptr;
}

}  // namespace heddle::host
