#include "host/plan/plan_builder.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "host/program/one_of.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "host/unroll/overlap.h"
#include "host/unroll/view.h"
#include "ir/base/check.h"

namespace heddle::host {

PlanBuilder::PlanBuilder(const Program& program, const Unrolled& unrolled,
                         const UnrollRequest& request, const SizeBindings& sizes,
                         const GivenTensors& given, const PlanTarget& target)
    : program_(program),
      unrolled_(unrolled),
      sizes_(sizes),
      given_(given),
      target_(target),
      plan_(std::make_shared<Plan>()) {
  plan_->request = request;
}

std::shared_ptr<const Plan> PlanBuilder::build() {
  draft();
  prepareLibraryCalls();
  loadKernels();
  return plan_;
}

void PlanBuilder::compileKernels() {
  draft();
  target_.kernels.compile(newKernels());
}

// Creates all parts of the plan that need no other rank. Loads no generated kernels.
void PlanBuilder::draft() {
  plan_->streams = target_.streams;
  plan_->communication_streams = target_.communication_streams;
  for (auto* list : {&plan_->instruction_of, &step_of_unrolled_}) {
    list->reserve(unrolled_.steps.size());
  }
  plan_->steps.reserve(unrolled_.steps.size());
  plan_->notes.reserve(unrolled_.steps.size());
  plan_->registers = unrolled_.registers;
  plan_->late = unrolled_.late;
  plan_->workspace_bytes.assign(plan_->streams, 0);
  plan_->counts_blocks.assign(plan_->streams, false);
  streams_used_.assign(plan_->streams, false);
  for (const auto& [symbol, size] : sizes_) {
    boost::hash_combine(plan_->sizes_hash, symbol);
    boost::hash_combine(plan_->sizes_hash, size);
  }
  // The order matters:
  // - Streams, events and pointers come first, because steps depend on them.
  // - storeValues() precedes emitFork(), because all streams read the values that it stores.
  // - finishJumps() comes after all steps, because it needs their indices.
  // - build() prepares all matrix products and attentions together, and then loads all kernels.
  findEventUses();
  bindBuffers();
  bindValues();
  bindOutputs();
  storeValues();
  emitFork();
  emitAll();
  emitJoin();
  finishOutputs();
  finishJumps();
  findRemaining();
}

Step& PlanBuilder::emit(Step step) {
  plan_->instruction_of.push_back(current_);
  plan_->notes.push_back(note_);
  plan_->notes.back().stream = std::visit(
      [](const auto& s) {
        if constexpr (requires { s.stream; }) return s.stream;
        return StreamId();
      },
      step);
  return plan_->steps.emplace_back(std::move(step));
}

Address PlanBuilder::addressOf(const View& view) {
  if (view.late.empty()) return {pointerTo(view.buffer), view.byte_offset};
  return {latePointer(view), view.byte_offset};
}

// Returns the pointer for a view whose address depends on late inputs. The index is computed from
// the number of outputs of the program, because Plan::outputs may still be empty.
PointerIndex PlanBuilder::latePointer(const View& view) {
  const PointerIndex base = pointerTo(view.buffer);
  std::vector<Plan::LatePointer>& all = plan_->late_pointers;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Plan::LatePointer& each) {
    return each.base == base && each.terms == view.late;
  });
  const PointerIndex pointer(firstLatePointer() + static_cast<size_t>(found - all.begin()));
  if (found == all.end()) all.push_back({base, view.late});
  return pointer;
}

void PlanBuilder::setAlignment(PointerIndex pointer, const std::vector<int32_t>& alignments,
                               size_t i) {
  if (i < alignments.size()) alignments_[pointer] = alignments[i];
}

size_t PlanBuilder::firstLatePointer() const {
  return unrolled_.buffers.size() + 2 * plan_->streams + program_.outputs.size();
}

// Returns the alignment of an address in bytes. All memory of an Allocator has full alignment
// (host/device/device.h). For a late address, the base and each term limit the alignment. The
// function does not store the result, because a tensor of the caller may replace the base later.
int32_t PlanBuilder::alignmentAt(const Address& address) const {
  int32_t alignment = codegen::kFullAlignment;
  if (address.pointer.valid() && address.pointer.index() >= firstLatePointer()) {
    const Plan::LatePointer& late =
        plan_->late_pointers[address.pointer.index() - firstLatePointer()];
    alignment = alignmentAt({late.base, 0});
    for (const View::LateTerm& term : late.terms) {
      alignment = std::min(alignment, codegen::alignmentOf(static_cast<uint64_t>(term.bytes)));
    }
  } else if (const auto found = alignments_.find(address.pointer); found != alignments_.end()) {
    alignment = found->second;
  }
  return std::min(alignment, codegen::alignmentOf(static_cast<uint64_t>(address.offset)));
}

Plan::Operand PlanBuilder::operandOf(const UnrolledStep& step, size_t input) {
  const View& view = step.inputs.at(input);
  return {addressOf(view), view.desc, step.scalar_inputs.at(input)};
}

void PlanBuilder::useEvent(const EventKey& key, StreamId stream) {
  EventUse& use = uses_[key];
  if (!use.stream.valid()) use.stream = stream;
  use.crosses = use.crosses || use.stream != stream;
}

// Finds out which streams the program uses, and which tokens and events are used on several
// streams.
void PlanBuilder::findEventUses() {
  StreamId group_stream = kCallerStream;
  for (const UnrolledStep& step : unrolled_.steps) {
    if (step.instruction == nullptr) continue;
    if (step.stream.valid()) streams_used_[step.stream] = true;
    const Op& op = step.instruction->op;
    if (kindOf(op) == InstructionKind::Post) group_stream = step.stream;
    // GroupEnd has no stream. Its token is recorded on the stream of the posts in the group.
    const StreamId stream = streamOf(op).value_or(group_stream);
    forEachToken(op, [&](TokenId id, FieldRole) { useEvent(id, stream); });
    forEachFieldOfKind<FieldKind::EventUse>(op,
                                            [&](EventId id, FieldRole) { useEvent(id, stream); });
  }
}

// Returns, per buffer, whether it is an input that a step writes.
IdVector<BufferId, bool> PlanBuilder::writtenInputs() const {
  IdVector<BufferId, bool> written(unrolled_.buffers.size(), false);
  for (const UnrolledStep& step : unrolled_.steps) {
    for (const UnrolledAccess& access : step.accesses) {
      const bool is_input = unrolled_.buffers[access.buffer].origin == Buffer::Origin::Input;
      if (access.write && is_input) written[access.buffer] = true;
    }
  }
  return written;
}

void PlanBuilder::checkWrittenInput(const Buffer& buffer) const {
  const TensorDesc& desc = unrolled_.input_descs.at(buffer.input);
  HEDDLE_USER_CHECK(!isByValue(buffer.input),
                    "input {} (%{}) is updated in place, so its tensor must be in device memory, "
                    "but it is in host memory",
                    buffer.input, buffer.name);
  HEDDLE_USER_CHECK_CODE(
      ShapeMismatch, !mayOverlapItself(desc),
      "input {} (%{}) is updated in place, so its elements must not overlap, but its "
      "tensor has the sizes {} and the strides {}",
      buffer.input, buffer.name, str(desc.sizes), str(desc.strides));
}

// Lists the tensors and scalars of the caller that a run stores in RunState::pointers and
// RunState::registers. Exception: bindValues() lists the 0-d tensors in host memory.
void PlanBuilder::bindBuffers() {
  plan_->buffers = unrolled_.buffers;
  const IdVector<BufferId, bool> written = writtenInputs();
  substituted_.assign(unrolled_.buffers.size(), false);
  for (BufferId id : unrolled_.buffers.ids()) {
    const Buffer& buffer = unrolled_.buffers[id];
    if (buffer.origin != Buffer::Origin::Input) continue;
    if (written[id]) checkWrittenInput(buffer);
    if (isByValue(buffer.input)) continue;
    plan_->buffer_inputs.push_back({pointerTo(id), buffer.input, written[id], buffer.donated});
    plan_->has_exclusive_input |= written[id] || buffer.donated;
    setAlignment(pointerTo(id), given_.input_alignments, static_cast<size_t>(buffer.input));
  }
  for (size_t i = 0; i < unrolled_.input_registers.size(); ++i) {
    if (!unrolled_.input_registers[i].valid()) continue;
    const Slot& input = slot(program_.inputs[i]);
    plan_->scalar_inputs.push_back({unrolled_.input_registers[i], static_cast<int32_t>(i),
                                    input.tensor.dtype,
                                    input.default_value.value_or(Scalar(int64_t{0})), input.name});
  }
}

// Makes all other streams that the plan uses wait for stream 0. A run begins and ends on stream 0,
// which is the caller's stream. The other streams must start after the work that the caller has
// enqueued.
void PlanBuilder::emitFork() {
  DeviceEventId event;
  for (StreamId stream : IdRange(StreamId(1), streams_used_.endId())) {
    if (!streams_used_[stream]) continue;
    if (!event.valid()) {
      event = newEvent();
      emit(RecordStep{event, kCallerStream});
    }
    emit(WaitStep{event, stream});
  }
}

// Makes stream 0 wait for all other streams that the plan uses, at the end of the run.
void PlanBuilder::emitJoin() {
  current_ = -1;
  for (StreamId stream : IdRange(StreamId(1), streams_used_.endId())) {
    if (!streams_used_[stream]) continue;
    const DeviceEventId event = newEvent();
    emit(RecordStep{event, stream});
    emit(WaitStep{event, kCallerStream});
  }
}

void PlanBuilder::emitAll() {
  for (const UnrolledStep& step : unrolled_.steps) {
    step_of_unrolled_.push_back(static_cast<int32_t>(plan_->steps.size()));
    current_ = step.index;
    beginNote(step);
    const size_t first = plan_->steps.size();
    try {
      emitOne(step);
      inspect(step, first);
    } catch (const UserError& e) {
      if (step.instruction == nullptr) throw;
      userErrorWith(e.code(), "instruction {} ({}): {}", step.index,
                    printInstruction(program_, *step.instruction), e.what());
    }
  }
  step_of_unrolled_.push_back(static_cast<int32_t>(plan_->steps.size()));
  current_ = -1;
  note_ = {};
}

// Sets note_, the note for the plan steps that belong to a step of the unrolled program.
void PlanBuilder::beginNote(const UnrolledStep& step) {
  note_ = {};
  if (step.instruction != nullptr) {
    const size_t index = step.index;
    if (occurrences_.size() <= index) occurrences_.resize(index + 1);
    note_.occurrence = occurrences_[index]++;
  }
  for (const UnrolledAccess& access : step.accesses) {
    note_.bytes += access.end - access.begin;
    if (!access.write || note_.output_bytes > 0) continue;
    note_.output = {pointerTo(access.buffer), access.begin};
    note_.output_bytes = access.end - access.begin;
  }
}

void PlanBuilder::emitOne(const UnrolledStep& step) {
  if (step.instruction == nullptr) {
    emit(GotoStep{step.jump});
    return;
  }
  std::visit(Overloaded{
                 [](const OneOf<Alias, For> auto&) {},  // unroll() has resolved all views and loops
                 [](const Call&) { HEDDLE_CHECK(false, "a Call was not inlined"); },
                 [&](const auto& x) { emit(x, step); },
             },
             step.instruction->op);
}

// Converts the targets of jumps from steps of the unrolled program to steps of the plan.
void PlanBuilder::finishJumps() {
  for (Step& step : plan_->steps) {
    // Only GotoStep and BranchStep have a target.
    if (auto* jump = std::get_if<GotoStep>(&step)) {
      jump->target = step_of_unrolled_.at(jump->target);
    } else if (auto* branch = std::get_if<BranchStep>(&step)) {
      branch->target = step_of_unrolled_.at(branch->target);
    }
  }
}

// Finds the buffers that a run may allocate and not free. If the plan has a jump, these are all
// allocated buffers, because a run may skip any free.
void PlanBuilder::findRemaining() {
  IdVector<BufferId, bool> remains(plan_->buffers.size(), false);
  bool jumps = false;
  for (const Step& step : plan_->steps) {
    // Only AllocateStep allocates, only FreeStep frees, and only BranchStep and GotoStep jump.
    if (const auto* allocate = std::get_if<AllocateStep>(&step)) remains[allocate->buffer] = true;
    jumps = jumps || isOneOf<BranchStep, GotoStep>(step);
  }
  for (const Step& step : plan_->steps) {
    const auto* free = std::get_if<FreeStep>(&step);
    if (free != nullptr && !jumps) remains[free->buffer] = false;
  }
  for (BufferId id : remains.ids()) {
    if (remains[id]) plan_->remaining.push_back(id);
  }
}

namespace {

// Returns the sizes without the late inputs, because a plan is valid for a range of values of a
// late input. The job monitor compares the hash of the returned sizes between ranks.
SizeBindings fixedSizes(const Program& program, const Unrolled& unrolled, SizeBindings sizes) {
  for (const auto& [input, range] : unrolled.late) {
    sizes.erase(scalarSymbol(program.slots.at(program.inputs.at(input)).name));
  }
  return sizes;
}

}  // namespace

std::shared_ptr<const Plan> makePlan(const Program& program, const Unrolled& unrolled,
                                     const UnrollRequest& request, const GivenTensors& given,
                                     const PlanTarget& target) {
  if (unrolled.late.empty()) {
    return PlanBuilder(program, unrolled, request, request.sizes, given, target).build();
  }
  const SizeBindings fixed = fixedSizes(program, unrolled, request.sizes);
  return PlanBuilder(program, unrolled, request, fixed, given, target).build();
}

void compileKernels(const Program& program, const Unrolled& unrolled, const UnrollRequest& request,
                    const GivenTensors& given, const PlanTarget& target) {
  const SizeBindings fixed = fixedSizes(program, unrolled, request.sizes);
  PlanBuilder(program, unrolled, request, fixed, given, target).compileKernels();
}

int64_t bytesOf(const Plan& plan) {
  const auto bytes = [](const auto& list) { return list.size() * sizeof(*list.begin()); };
  return static_cast<int64_t>(sizeof(plan) + bytes(plan.steps) + bytes(plan.instruction_of) +
                              bytes(plan.notes) + bytes(plan.args) + bytes(plan.pointer_patches) +
                              bytes(plan.scalar_patches) + bytes(plan.stages) +
                              bytes(plan.buffers) + bytes(plan.outputs) + bytes(plan.operations)) +
         plan.kernel_bytes;
}

}  // namespace heddle::host
