// The members of PlanBuilder for generated kernels.
#include <algorithm>
#include <iterator>

#include "codegen/bind/candidates.h"
#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel.h"
#include "host/device/kernel_choices.h"
#include "host/plan/kernel_store.h"
#include "host/plan/local_segment.h"
#include "host/plan/plan_builder.h"
#include "host/plan/stored_segment.h"
#include "host/unroll/check_operands.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr size_t kArgsAlignment = 16;

std::vector<TensorDesc> descsOf(const codegen::DescList::Pointers& pointers) {
  std::vector<TensorDesc> descs;
  descs.reserve(pointers.size());
  for (const TensorDesc* desc : pointers) descs.push_back(*desc);
  return descs;
}

// Returns whether both operands have the same descriptor.
bool areEqual(const TensorDesc* a, const TensorDesc* b) { return a == b || *a == *b; }

}  // namespace

const std::string& PlanBuilder::Launch::candidate() const {
  static const std::string kNone;
  return kernel == nullptr ? kNone : kernel->candidate;
}

PlanBuilder::LaunchOperand PlanBuilder::launchOperand(const UnrolledStep& step, size_t input) {
  const View& view = step.inputs[input];
  return {addressOf(view), &view.desc, step.scalar_inputs.at(input)};
}

void PlanBuilder::emit(const LaunchKernel& op, const UnrolledStep& step) {
  const Kernel& kernel = program_.kernels.at(op.kernel);
  Launch launch{&kernel.segment, {}, {}, op.stream, {}, &step, &kernel};
  if (!target_.segments.empty()) launch.stored = target_.segments[op.kernel];
  launch.inputs.reserve(step.inputs.size());
  launch.outputs.reserve(step.outputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) launch.inputs.push_back(launchOperand(step, i));
  for (const View& view : step.outputs) launch.outputs.push_back({addressOf(view), &view.desc});
  emitLaunch(std::move(launch));
}

void PlanBuilder::emitLaunch(Launch launch) {
  const bool is_empty =
      std::all_of(launch.outputs.begin(), launch.outputs.end(),
                  [](const LaunchOperand& operand) { return operand.desc->numel() == 0; });
  if (is_empty) return;
  passValues(launch);
  // The null device only counts launches, so its step has an empty stage. On all other devices, the
  // reference evaluator runs the segment if there is no compiler.
  if (target_.device.kind() == DeviceKind::Null) {
    emit(LaunchStep{plan_->stages.emplace_back(), 0, 0, 0, 0, launch.stream});
    return;
  }
  if (target_.device.compiler() == nullptr) {
    HEDDLE_USER_CHECK_CODE(Unsupported, launch.candidate().empty(),
                           "candidate {} of kernel {}: without a compiler there are no candidates",
                           launch.candidate(), launch.kernel->name);
    emitReference(launch);
    return;
  }
  const PlannedKernel& kernel = planned(launch);
  for (StageId id : kernel.stages()) emitStage(id, launch);
  int64_t& workspace = plan_->workspace_bytes[launch.stream];
  workspace = std::max(workspace, kernel.plan.workspace_bytes);
}

void PlanBuilder::emitReference(const Launch& launch) {
  const auto operandsOf = [](const LaunchOperands& operands) {
    std::vector<Plan::Operand> copies;
    for (const LaunchOperand& each : operands) {
      copies.push_back({each.address, *each.desc, each.scalar});
    }
    return copies;
  };
  const auto descsOf = [](const LaunchOperands& operands) {
    std::vector<TensorDesc> descs;
    for (const LaunchOperand& each : operands) descs.push_back(*each.desc);
    return descs;
  };
  const ReferenceId id = plan_->references.push_back(
      {localSegment(*launch.segment, descsOf(launch.inputs), descsOf(launch.outputs),
                    sizesInside(launch), unrolled_.rank),
       operandsOf(launch.inputs), operandsOf(launch.outputs)});
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
    Address address{plan_->workspace(launch.stream), patch.workspace_offset};
    const size_t operand = patch.operand;
    if (patch.operand == codegen::LaunchStage::kCounters) {
      address = {plan_->counters(launch.stream), 0};
      plan_->counts_blocks[launch.stream] = true;
    } else if (patch.operand != codegen::LaunchStage::kWorkspace) {
      address = operand < launch.inputs.size()
                    ? launch.inputs[operand].address
                    : launch.outputs.at(operand - launch.inputs.size()).address;
    }
    plan_->pointer_patches.push_back({stage.args + patch.offset, address});
  }
  for (const auto& patch : stage.launch.scalars) {
    const RegisterId scalar = launch.inputs.at(patch.operand).scalar;
    HEDDLE_CHECK(scalar.valid(), "operand {} of a kernel is not a scalar", patch.operand);
    plan_->scalar_patches.push_back({stage.args + patch.offset, scalar, patch.dtype});
  }
  step.pointers = static_cast<int32_t>(plan_->pointer_patches.size()) - step.first_pointer;
  step.scalars = static_cast<int32_t>(plan_->scalar_patches.size()) - step.first_scalar;
  emit(step);
}

bool PlanBuilder::isPlannedFor(const PlannedKernel& kernel, const Launch& launch) const {
  size_t operand = 0;
  const auto are_same = [&](const codegen::DescList::Pointers& descs,
                            const LaunchOperands& operands) {
    return std::equal(descs.begin(), descs.end(), operands.begin(), operands.end(),
                      [&](const TensorDesc* desc, const LaunchOperand& other) {
                        return kernel.alignments[operand++] == alignmentAt(other.address) &&
                               areEqual(desc, other.desc);
                      });
  };
  return are_same(kernel.inputs, launch.inputs) && are_same(kernel.outputs, launch.outputs);
}

KernelStore::Key PlanBuilder::keyOf(const PlannedKernel& kernel) {
  return {kernel.stored->number(),
          descsOf(kernel.inputs),
          descsOf(kernel.outputs),
          kernel.alignments,
          kernel.run,
          kernel.choice ? codegen::print(*kernel.choice) : std::string()};
}

// Returns the kernel of a launch. An earlier launch with the same segment, candidate, descriptors
// and alignments has the same kernel. Otherwise findKernel() takes the kernel from the store or
// plans it. The reference is valid until the next call.
PlanBuilder::PlannedKernel& PlanBuilder::planned(Launch& launch) {
  if (!launch.stored) launch.stored = target_.kernels.segmentOf(*launch.segment);
  const auto begin = kernel_segments_.begin(), end = kernel_segments_.end();
  for (auto at = begin; (at = std::find(at, end, launch.stored.get())) != end; ++at) {
    PlannedKernel& kernel = kernels_[static_cast<size_t>(at - begin)];
    if (kernel.candidate == launch.candidate() && isPlannedFor(kernel, launch)) return kernel;
  }
  if (kernels_.empty()) {
    kernels_.reserve(program_.kernels.size());
    kernel_segments_.reserve(program_.kernels.size());
    plan_->stages.reserve(program_.kernels.size());
  }
  kernel_segments_.push_back(launch.stored.get());
  PlannedKernel& kernel = kernels_.emplace_back(PlannedKernel{launch.stored});
  const auto add = [&](const LaunchOperands& operands, codegen::DescList::Pointers& descs) {
    descs.reserve(operands.size());
    for (const LaunchOperand& operand : operands) {
      descs.push_back(operand.desc);
      kernel.alignments.push_back(alignmentAt(operand.address));
    }
  };
  kernel.alignments.reserve(launch.inputs.size() + launch.outputs.size());
  add(launch.inputs, kernel.inputs);
  add(launch.outputs, kernel.outputs);
  kernel.candidate = launch.candidate();
  findKernel(kernel, launch);
  addStages(kernel);
  return kernel;
}

// Returns the values of the symbols in the segment of a launch. A kernel that the plan adds
// (Launch::step is nullptr) has no symbols except those of its operands.
SizeBindings PlanBuilder::sizesInside(const Launch& launch) const {
  if (launch.step == nullptr) return {};
  SizeBindings own;
  return host::sizesInside(*launch.segment, *launch.step, sizes_, own);
}

// Takes the kernel from the store, or plans it. Both steps use the stored segment instead of the
// program's segment, because the stored analysis was computed for the stored segment.
void PlanBuilder::findKernel(PlannedKernel& kernel, const Launch& launch) {
  const codegen::Analysis& analysis = kernel.stored->planner().analysis();
  if (!analysis.generated.empty() || !analysis.widths.empty()) {
    kernel.run =
        runSizes(kernel.stored->segment(), analysis, descsOf(kernel.inputs),
                 descsOf(kernel.outputs), sizesInside(launch), unrolled_.rank, target_.ranks);
  }
  kernel.run.clusters = target_.device.compiler()->supportsClusters();
  // Choices name candidates only for kernels of the program, not for kernels that the plan itself
  // adds.
  const bool has_choices = target_.choices != nullptr && launch.kernel != nullptr;
  if (!kernel.candidate.empty() || has_choices) choose(kernel, launch);
  if (auto bound = target_.kernels.bind(*kernel.stored, kernel.operands())) {
    kernel.plan = std::move(bound->plan);
    kernel.loaded = std::move(bound->loaded);
    return;
  }
  auto found = target_.kernels.find(keyOf(kernel));
  if (!found) return planNew(kernel);
  kernel.plan = std::move(found->plan);
  kernel.loaded = std::move(found->loaded);
}

// Finds the candidate that the program or PlanTarget::choices names. For this, it plans all
// candidates of the kernel, which takes time. If PlanTarget::choices names candidate 0, or none,
// PlannedKernel::choice stays empty.
void PlanBuilder::choose(PlannedKernel& kernel, const Launch& launch) const {
  const std::vector<TensorDesc> in = descsOf(kernel.inputs);
  const std::vector<TensorDesc> out = descsOf(kernel.outputs);
  std::vector<codegen::Candidate> all =
      codegen::candidates(kernel.stored->segment(), in, out, target_.device.compiler()->target(),
                          kernel.alignments, kernel.run, &kernel.stored->planner().analysis());
  const std::string& name = launch.kernel->name;
  if (!kernel.candidate.empty()) {
    kernel.choice = std::move(all[codegen::findCandidate(all, kernel.candidate, name)].choice);
    return;
  }
  const std::string key = choiceKey(all, in, out, target_.device);
  const size_t chosen = chosenCandidate(all, *target_.choices, key, name);
  if (chosen > 0) kernel.choice = std::move(all[chosen].choice);
}

void PlanBuilder::planNew(PlannedKernel& kernel) const {
  kernel.plan =
      codegen::planKernel(kernel.stored->segment(), descsOf(kernel.inputs), descsOf(kernel.outputs),
                          target_.device.compiler()->target(), kernel.alignments, kernel.run,
                          &kernel.stored->planner().analysis(), &kernel.layouts,
                          kernel.choice ? &*kernel.choice : nullptr);
}

// Copies the argument blocks of a kernel to the plan. Moves its launches there, or copies them if
// the kernel is new.
void PlanBuilder::addStages(PlannedKernel& kernel) {
  kernel.first_stage = plan_->stages.endId();
  kernel.stage_count = kernel.plan.stages.size();
  for (codegen::LaunchStage& launch : kernel.plan.stages) {
    plan_->args.resize((plan_->args.size() + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment);
    Plan::Stage stage;
    stage.args = static_cast<int32_t>(plan_->args.size());
    plan_->args.insert(plan_->args.end(), launch.args.begin(), launch.args.end());
    if (kernel.isNew()) {
      stage.launch = launch;  // the store needs the launches of a new kernel
    } else {
      stage.launch = std::move(launch);
    }
    plan_->stages.push_back(std::move(stage));
  }
}

// Returns all new kernels of the plan. The callers compile them together, because a compiler can
// compile several kernels at once.
std::vector<const codegen::KernelPlan*> PlanBuilder::newKernels() const {
  std::vector<const codegen::KernelPlan*> added;
  for (const PlannedKernel& kernel : kernels_) {
    if (kernel.isNew()) added.push_back(&kernel.plan);
  }
  return added;
}

// Compiles, loads and stores the new kernels. Then sets the handles of all stages.
void PlanBuilder::loadKernels() {
  const std::vector<const codegen::KernelPlan*> added = newKernels();
  KernelStore::Prepared prepared;
  if (!added.empty()) prepared = target_.kernels.prepare(added);
  plan_->kernel_bytes = prepared.bytes;
  size_t next = 0;
  for (PlannedKernel& kernel : kernels_) {
    if (kernel.isNew()) {
      kernel.loaded = std::move(prepared.kernels[next++]);
      store(kernel);
    }
    size_t stage = 0;
    for (StageId id : kernel.stages()) plan_->stages[id].kernel = kernel.loaded[stage++].get();
    std::move(kernel.loaded.begin(), kernel.loaded.end(), std::back_inserter(plan_->kernels));
  }
}

// Stores a new kernel for later plans.
void PlanBuilder::store(PlannedKernel& kernel) {
  if (kernel.stored->add(kernel.operands(), kernel.plan, std::move(kernel.layouts),
                         kernel.loaded)) {
    return;
  }
  kernel.plan.source.text.clear();
  target_.kernels.add(keyOf(kernel), std::move(kernel.plan), kernel.loaded);
}

}  // namespace heddle::host
