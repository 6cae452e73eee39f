// The members of PlanBuilder for generated kernels.
#include <algorithm>

#include "codegen/emit/plan_kernel.h"
#include "host/plan/local_segment.h"
#include "host/plan/plan_builder.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

constexpr size_t kArgsAlignment = 16;

bool isEmpty(const std::vector<Plan::Operand>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const Plan::Operand& o) { return o.desc.numel() == 0; });
}

std::vector<TensorDesc> descsOf(const std::vector<Plan::Operand>& operands) {
  std::vector<TensorDesc> descs;
  for (const Plan::Operand& operand : operands) descs.push_back(operand.desc);
  return descs;
}

}  // namespace

void PlanBuilder::emit(const LaunchKernel& op, const UnrolledStep& step) {
  Launch launch;
  launch.segment = &program_.kernels.at(op.kernel).segment;
  launch.stream = op.stream;
  for (size_t i = 0; i < step.inputs.size(); ++i) launch.inputs.push_back(operandOf(step, i));
  for (const View& view : step.outputs) launch.outputs.push_back({placeOf(view), view.desc});
  emitLaunch(std::move(launch));
}

void PlanBuilder::emitLaunch(Launch launch) {
  if (isEmpty(launch.outputs)) return;
  passValues(launch);
  // The null device only counts launches, so its step has an empty stage. On all other devices, the
  // reference evaluator runs the segment if there is no compiler.
  if (target_.device.kind() == DeviceKind::Null) {
    emit(LaunchStep{plan_->stages.emplace_back(), 0, 0, 0, 0, launch.stream});
    return;
  }
  if (target_.device.compiler() == nullptr) {
    emitReference(launch);
    return;
  }
  const PlannedKernel& kernel = planned(launch);
  for (StageId id : kernel.stages()) emitStage(id, launch);
  int64_t& workspace = plan_->workspace_bytes[launch.stream];
  workspace = std::max(workspace, kernel.kernel.workspace_bytes);
}

void PlanBuilder::emitReference(const Launch& launch) {
  const ReferenceId id =
      plan_->references.push_back({localSegment(*launch.segment, descsOf(launch.inputs),
                                                descsOf(launch.outputs), sizes_, unrolled_.rank),
                                   launch.inputs, launch.outputs});
  emit(ReferenceStep{id, launch.stream});
}

// Emits the launch of one stage. The patches of the step state at which offset of the argument
// block a run writes each pointer and scalar.
void PlanBuilder::emitStage(StageId id, const Launch& launch) {
  const Plan::Stage& stage = plan_->stages[id];
  LaunchStep step{};
  step.stage = id;
  step.stream = launch.stream;
  step.first_pointer = static_cast<int32_t>(plan_->pointer_patches.size());
  step.first_scalar = static_cast<int32_t>(plan_->scalar_patches.size());
  for (const auto& patch : stage.launch.pointers) {
    Place place{plan_->workspace(launch.stream), patch.place};
    const auto operand = static_cast<size_t>(patch.operand);
    if (patch.operand != codegen::LaunchStage::kWorkspace) {
      place = operand < launch.inputs.size()
                  ? launch.inputs[operand].place
                  : launch.outputs.at(operand - launch.inputs.size()).place;
    }
    plan_->pointer_patches.push_back({stage.args + patch.offset, place});
  }
  for (const auto& patch : stage.launch.scalars) {
    const RegisterId scalar = launch.inputs.at(static_cast<size_t>(patch.operand)).scalar;
    HEDDLE_CHECK(scalar.valid(), "operand {} of a kernel is not a scalar", patch.operand);
    plan_->scalar_patches.push_back({stage.args + patch.offset, scalar, patch.dtype});
  }
  step.pointers = static_cast<int32_t>(plan_->pointer_patches.size()) - step.first_pointer;
  step.scalars = static_cast<int32_t>(plan_->scalar_patches.size()) - step.first_scalar;
  emit(step);
}

// Returns the kernel of a launch. Plans the kernel if there was no earlier launch of the segment
// with equal descriptors.
PlanBuilder::PlannedKernel& PlanBuilder::planned(const Launch& launch) {
  std::vector<TensorDesc> inputs = descsOf(launch.inputs);
  std::vector<TensorDesc> outputs = descsOf(launch.outputs);
  std::vector<int32_t> alignments;
  for (const auto* operands : {&launch.inputs, &launch.outputs}) {
    for (const Plan::Operand& operand : *operands) alignments.push_back(alignmentAt(operand.place));
  }
  for (PlannedKernel& kernel : kernels_) {
    if (kernel.segment == launch.segment && kernel.inputs == inputs && kernel.outputs == outputs &&
        kernel.alignments == alignments) {
      return kernel;
    }
  }
  kernels_.push_back(
      {launch.segment, std::move(inputs), std::move(outputs), std::move(alignments), {}});
  PlannedKernel& kernel = kernels_.back();
  const std::optional<Fusion> numbers =
      withPadWidths(*kernel.segment, kernel.inputs, kernel.outputs, sizes_);
  kernel.kernel =
      codegen::planKernel(numbers ? *numbers : *kernel.segment, kernel.inputs, kernel.outputs,
                          target_.device.compiler()->target(), kernel.alignments);
  addStages(kernel);
  return kernel;
}

// Copies the stages of a kernel and their argument blocks to the plan.
void PlanBuilder::addStages(PlannedKernel& kernel) {
  kernel.first_stage = plan_->stages.endId();
  for (const codegen::LaunchStage& launch : kernel.kernel.stages) {
    plan_->args.resize((plan_->args.size() + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment);
    Plan::Stage stage;
    stage.launch = launch;
    stage.args = static_cast<int32_t>(plan_->args.size());
    plan_->args.insert(plan_->args.end(), launch.args.begin(), launch.args.end());
    plan_->stages.push_back(std::move(stage));
  }
}

// Compiles and loads all kernels of the plan together, because a compiler can compile several
// kernels at once.
void PlanBuilder::loadKernels() {
  if (kernels_.empty()) return;
  std::vector<const codegen::KernelPlan*> all;
  for (const PlannedKernel& kernel : kernels_) all.push_back(&kernel.kernel);
  target_.kernels.prepare(all);
  for (const PlannedKernel& kernel : kernels_) {
    for (StageId id : kernel.stages()) {
      Plan::Stage& stage = plan_->stages[id];
      stage.kernel = target_.kernels.handle(kernel.kernel.source.text, stage.launch.entry);
    }
  }
}

}  // namespace heddle::host
