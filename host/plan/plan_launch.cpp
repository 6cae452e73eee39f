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
  if (!target_.segment_ids.empty()) launch.segment_id = target_.segment_ids[op.kernel];
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
  workspace = std::max(workspace, kernel.plan().workspace_bytes);
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

// Returns the kernel of a launch. Takes it from an earlier launch or an earlier plan if the segment
// and the descriptors are equal. Otherwise plans the kernel.
PlanBuilder::PlannedKernel& PlanBuilder::planned(const Launch& launch) {
  KernelStore::Key key{launch.segment_id, descsOf(launch.inputs), descsOf(launch.outputs), {}};
  for (const auto* operands : {&launch.inputs, &launch.outputs}) {
    for (const Plan::Operand& operand : *operands) {
      key.alignments.push_back(alignmentAt(operand.place));
    }
  }
  for (PlannedKernel& kernel : kernels_) {
    if (kernel.segment == launch.segment && kernel.key.inputs == key.inputs &&
        kernel.key.outputs == key.outputs && kernel.key.alignments == key.alignments) {
      return kernel;
    }
  }
  kernels_.push_back({launch.segment, std::move(key), nullptr, {}});
  PlannedKernel& kernel = kernels_.back();
  if (kernel.key.segment >= 0) kernel.kernel = target_.kernels.find(kernel.key);
  if (!kernel.kernel) planNew(kernel);
  addStages(kernel);
  return kernel;
}

void PlanBuilder::planNew(PlannedKernel& kernel) const {
  KernelStore::Key& key = kernel.key;
  const std::optional<Fusion> numbers =
      withPadWidths(*kernel.segment, key.inputs, key.outputs, sizes_);
  const std::vector<TensorDesc> generated = generatedDescs(*kernel.segment, key.inputs, key.outputs,
                                                           sizes_, unrolled_.rank, target_.ranks);
  // The kernel also depends on the widths, or on these descriptors.
  if (numbers || !generated.empty()) key.segment = -1;
  const auto analysis =
      key.segment >= 0 ? target_.kernels.analysisOf(key.segment, *kernel.segment) : nullptr;
  kernel.planned = codegen::planKernel(numbers ? *numbers : *kernel.segment, key.inputs,
                                       key.outputs, target_.device.compiler()->target(),
                                       key.alignments, generated, analysis.get());
}

// Copies the stages of a kernel and their argument blocks to the plan.
void PlanBuilder::addStages(PlannedKernel& kernel) {
  kernel.first_stage = plan_->stages.endId();
  for (const codegen::LaunchStage& launch : kernel.plan().stages) {
    plan_->args.resize((plan_->args.size() + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment);
    Plan::Stage stage;
    stage.launch = launch;
    stage.args = static_cast<int32_t>(plan_->args.size());
    plan_->args.insert(plan_->args.end(), launch.args.begin(), launch.args.end());
    plan_->stages.push_back(std::move(stage));
  }
}

// Compiles and loads all new kernels of the plan together, because a compiler can compile several
// kernels at once.
void PlanBuilder::loadKernels() {
  std::vector<const codegen::KernelPlan*> added;
  for (const PlannedKernel& kernel : kernels_) {
    if (!kernel.kernel) added.push_back(&kernel.planned);
  }
  if (!added.empty()) target_.kernels.prepare(added);
  for (PlannedKernel& kernel : kernels_) {
    const bool is_new = !kernel.kernel;
    if (is_new) kernel.kernel = loaded(std::move(kernel.planned));
    size_t stage = 0;
    for (StageId id : kernel.stages()) plan_->stages[id].kernel = kernel.kernel->handles[stage++];
    if (is_new && kernel.key.segment >= 0) {
      target_.kernels.add(std::move(kernel.key), kernel.kernel);
    }
  }
}

// Returns the kernel with the handles of its stages. Requires that the store has prepared it.
std::shared_ptr<const KernelStore::Kernel> PlanBuilder::loaded(codegen::KernelPlan plan) const {
  auto kernel = std::make_shared<KernelStore::Kernel>();
  for (const codegen::LaunchStage& stage : plan.stages) {
    kernel->handles.push_back(target_.kernels.handle(plan.source.text, stage.entry));
  }
  plan.source.text.clear();
  kernel->plan = std::move(plan);
  return kernel;
}

}  // namespace heddle::host
