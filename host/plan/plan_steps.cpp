// The members of PlanBuilder for the instructions that plan_launch.cpp, plan_library.cpp and
// plan_communicate.cpp do not handle.
#include <algorithm>

#include "host/plan/plan_builder.h"
#include "host/program/visit.h"
#include "host/unroll/view.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle::host {
namespace {

// Returns the number of elements in memory from the first to the last element of a tensor, both
// included.
int64_t validSpan(const TensorDesc& desc) {
  int64_t span = 1;
  for (size_t i = 0; i < desc.rank(); ++i) span += (desc.sizes[i] - 1) * desc.strides[i];
  return span;
}

// Returns whether one copy of contiguous bytes is enough. This requires that `out` and `in` have
// the same strides, and that no data of other tensors lies between the elements of `out`.
bool isPlainCopy(const TensorDesc& out, const TensorDesc& in) {
  for (size_t i = 0; i < out.rank(); ++i) {
    if (out.sizes[i] > 1 && out.strides[i] != in.strides[i]) return false;
  }
  return validSpan(out) == elements(out.sizes) || out.allocElements() == elements(out.alloc);
}

// Returns the name of the op that computes a value, or "" for an input of the segment.
std::string opThatComputes(const Fusion& segment, ValueId id) {
  for (const Expression& expr : segment.exprs()) {
    for (ValueId output : expr.outputs) {
      if (output == id) return std::string(expr.op->name);
    }
  }
  return {};
}

}  // namespace

void PlanBuilder::emit(const Allocate& op, const UnrolledStep& step) {
  const BufferId buffer = step.outputs.at(0).buffer;
  if (substituted_[buffer]) return;
  emit(AllocateStep{buffer, op.stream, unrolled_.buffers[buffer].bytes});
}

void PlanBuilder::emit(const Free& op, const UnrolledStep& step) {
  const BufferId buffer = step.inputs.empty() ? step.outputs.at(0).buffer : step.inputs[0].buffer;
  if (substituted_[buffer]) return;
  emit(FreeStep{buffer, op.stream, unrolled_.buffers[buffer].bytes});
}

void PlanBuilder::emit(const Evaluate& op, const UnrolledStep& step) {
  const DType dtype = slot(op.out).tensor.dtype;
  std::visit(Overloaded{
                 [&](const Size&) {
                   HEDDLE_CHECK(step.known.has_value(), "a size without a value");
                   emit(RegisterStep{step.scalar_out, roundTo(dtype, *step.known)});
                 },
                 [&](const Scalar& value) {
                   emit(RegisterStep{step.scalar_out, roundTo(dtype, value)});
                 },
                 [&](const Evaluate::Apply& apply) { emitApply(op, apply, step); },
             },
             op.expression);
}

void PlanBuilder::emitApply(const Evaluate& op, const Evaluate::Apply& apply,
                            const UnrolledStep& step) {
  ApplyStep out{apply.op, {}, step.scalar_out, DType::F64, slot(op.out).tensor.dtype};
  HEDDLE_CHECK(apply.args.size() <= out.args.size(), "{} has {} operands, but a step holds {}",
               apply.op->name, apply.args.size(), out.args.size());
  // Operands are promoted to a common type, except operand 0 of `where`, the condition.
  const size_t first = apply.op->name == "where" ? 1 : 0;
  DType promoted = slot(apply.args.at(first)).tensor.dtype;
  for (size_t i = 0; i < apply.args.size(); ++i) {
    out.args[i] = step.scalar_inputs.at(i);
    if (i > first) promoted = promote(promoted, slot(apply.args[i]).tensor.dtype);
  }
  out.compute = operandType(*apply.op, resultType(*apply.op, promoted), promoted);
  emit(out);
}

void PlanBuilder::emit(const Copy& op, const UnrolledStep& step) {
  emitCopy({addressOf(step.outputs.at(0)), step.outputs[0].desc},
           {addressOf(step.inputs.at(0)), step.inputs[0].desc}, op.stream);
}

void PlanBuilder::emitCopy(const Plan::Operand& out, const Plan::Operand& in, StreamId stream) {
  HEDDLE_USER_CHECK(out.desc.sizes == in.desc.sizes,
                    "a copy of sizes {} to sizes {}: the sizes must be equal", str(in.desc.sizes),
                    str(out.desc.sizes));
  if (out.desc.numel() == 0) return;
  if (isPlainCopy(out.desc, in.desc)) {
    const int64_t bytes = validSpan(out.desc) * sizeOf(out.desc.dtype);
    emit(CopyStep{out.address, in.address, bytes, stream});
    return;
  }
  // Otherwise a generated kernel with a single `set` op copies the tensor. All of its sizes are
  // symbols. Copies with the same dtype and number of axes therefore share one segment, and one
  // kernel text for each form (codegen/bind/segment_planner.h).
  FusionBuilder builder("copy");
  TensorView type;
  type.dtype = in.desc.dtype;
  for (size_t i = 0; i < in.desc.rank(); ++i) {
    type.domain.push_back({Size::symbol(fmt::format("n{}", i)), IterKind::Iteration});
  }
  builder.output(builder.set(builder.input("x", type)));
  own_segments_.push_back(std::move(builder).build());
  const auto operand = [&](const Plan::Operand& given) {
    TensorDesc desc = given.desc;
    desc.global = desc.sizes;
    desc.offset.assign(desc.rank(), 0);
    return LaunchOperand{given.address, ownDesc(std::move(desc))};
  };
  emitLaunch({&own_segments_.back(), {operand(in)}, {operand(out)}, stream});
}

void PlanBuilder::emit(const ReadBack& op, const UnrolledStep& step) {
  const View& in = step.inputs.at(0);
  const int64_t count = in.desc.numel();
  plan_->staging_bytes = std::max(plan_->staging_bytes, count * sizeOf(in.desc.dtype));
  if (!read_back_event_.valid()) read_back_event_ = newEvent();
  emit(ReadBackStep{addressOf(in), step.scalar_out, read_back_event_, op.stream, in.desc.dtype,
                    slot(op.out).tensor.dtype, static_cast<int32_t>(count)});
}

void PlanBuilder::emit(const If& op, const UnrolledStep& step) {
  if (step.jump < 0) return;  // unroll() has decided this branch
  HEDDLE_CHECK(step.known.has_value() && !step.scalar_inputs.empty(),
               "a predicate without its two sides");
  branches_ = true;
  emit(BranchStep{step.scalar_inputs[0], op.predicate.compare, toInt(*step.known), step.jump});
}

NamedOperandId PlanBuilder::namedOperand(SlotId id, const UnrolledStep& step) {
  return plan_->named_operands.push_back({slot(id).name, operandOf(step, 0)});
}

void PlanBuilder::emit(const Check& op, const UnrolledStep& step) {
  emit(CheckStep{namedOperand(op.slot, step), op.stream});
}

void PlanBuilder::emit(const Print& op, const UnrolledStep& step) {
  emit(PrintStep{namedOperand(op.slot, step), op.stream});
}

// Adds the tensors and scalars of an instruction to the inspection. Skips types that are not
// floats, because they cannot be NaN or infinite.
void PlanBuilder::addInspected(const UnrolledStep& step, Plan::Inspection& inspection) {
  std::vector<SlotId> read;
  std::vector<SlotId> written;
  std::vector<std::string> ops;
  std::visit(Overloaded{
                 [&](const LaunchKernel& x) {
                   read = x.inputs;
                   written = x.outputs;
                   const Fusion& segment = program_.kernels.at(x.kernel).segment;
                   for (ValueId id : segment.outputs()) ops.push_back(opThatComputes(segment, id));
                 },
                 [&](const CallLibrary& x) {
                   read = x.inputs;
                   written = x.outputs;
                   ops.assign(written.size(), x.function);
                 },
                 [&](const Copy& x) {
                   read = {x.in};
                   written = {x.out};
                 },
                 [&](const Communicate& x) {
                   for (const Communicate::Pair& pair : x.pairs()) {
                     read.push_back(pair.in);
                     written.push_back(pair.out);
                   }
                 },
                 [&](const Send& x) { read = {x.slot}; },
                 [&](const Recv& x) { written = {x.slot}; },
                 [](const auto&) {},
             },
             step.instruction->op);
  const auto add = [&](SlotId id, const View& view, RegisterId scalar,
                       std::vector<Plan::NamedOperand>& list) {
    if (!isFloat(slot(id).tensor.dtype)) return;
    if (const HostValue* value = valueOf(view)) scalar = value->scalar;
    if (!scalar.valid() && (!view.buffer.valid() || view.desc.numel() == 0)) return;
    const Address address = scalar.valid() ? Address{} : addressOf(view);
    list.push_back({slot(id).name, {address, view.desc, scalar}});
  };
  for (size_t i = 0; i < std::min(read.size(), step.inputs.size()); ++i) {
    add(read[i], step.inputs[i], step.scalar_inputs.at(i), inspection.read);
  }
  for (size_t i = 0; i < std::min(written.size(), step.outputs.size()); ++i) {
    const size_t before = inspection.written.size();
    add(written[i], step.outputs[i], {}, inspection.written);
    if (inspection.written.size() == before) continue;
    inspection.ops.push_back(i < ops.size() ? ops[i] : "");
  }
}

void PlanBuilder::inspect(const UnrolledStep& step, size_t first) {
  if (!target_.check_numerics || step.instruction == nullptr) return;
  const Op& op = step.instruction->op;
  const bool communicates = kindOf(op) == InstructionKind::Post;
  // Only GroupEnd posts operations without being of the kind Post.
  const bool ends_group = std::holds_alternative<GroupEnd>(op);
  if (group_.open) return addInspected(step, group_.inspection);
  Plan::Inspection inspection;
  if (ends_group) inspection = std::move(group_.inspection);
  addInspected(step, inspection);
  if (inspection.read.empty() && inspection.written.empty()) return;
  inspection.instruction = step.index;
  inspection.occurrence = note_.occurrence;
  inspection.communicates = communicates || ends_group;
  size_t begin = plan_->steps.size();
  size_t end = 0;
  for (size_t i = first; i < plan_->steps.size(); ++i) {
    if (!writesData(plan_->steps[i])) continue;
    begin = std::min(begin, i);
    end = i + 1;
  }
  if (begin >= end) return;  // the instruction does nothing on this rank
  const StreamId stream = plan_->notes[begin].stream;
  if (const auto* post = std::get_if<CollectiveStep>(&plan_->steps[begin])) {
    inspection.counts = post->counts;
  }
  const InspectionId id = plan_->inspections.push_back(std::move(inspection));
  // Inspect the results before the step that records a token. After that step, other streams may
  // overwrite the results.
  insertStep(end, {id, true, stream});
  insertStep(begin, {id, false, stream});
}

// Inserts a step that belongs to no instruction, so that timelines do not count its time.
void PlanBuilder::insertStep(size_t at, InspectStep step) {
  const auto offset = static_cast<std::ptrdiff_t>(at);
  Plan::StepNote note;
  note.stream = step.stream;
  plan_->steps.insert(plan_->steps.begin() + offset, step);
  plan_->instruction_of.insert(plan_->instruction_of.begin() + offset, -1);
  plan_->notes.insert(plan_->notes.begin() + offset, note);
}

}  // namespace heddle::host
