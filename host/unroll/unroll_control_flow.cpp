#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "host/unroll/check_operands.h"
#include "host/unroll/compare.h"
#include "host/unroll/unroller.h"
#include "ir/base/check.h"

namespace heddle::host {
bool compare(Predicate::Compare how, int64_t a, int64_t b) {
  switch (how) {
    case Predicate::Compare::Eq:
      return a == b;
    case Predicate::Compare::Ne:
      return a != b;
    case Predicate::Compare::Lt:
      return a < b;
    case Predicate::Compare::Le:
      return a <= b;
    case Predicate::Compare::Gt:
      return a > b;
    case Predicate::Compare::Ge:
      return a >= b;
  }
  HEDDLE_CHECK(false, "comparison {}", static_cast<int>(how));
}

void Unroller::advance() {
  Frame& top = frames_.back();
  if (top.next == top.list->size()) return close();
  const Instruction& x = (*top.list)[top.next++];
  const InstructionIndex index = top.index;
  top.index += 1;
  forEachBody(x.op, [&](const std::vector<Instruction>& body) { top.index += lengthOf(body); });
  if (x.on.valid() && !scope_.isIn(x.on)) return;
  try {
    instruction(x, index);
  } catch (const UserError& error) {
    throw withText(error, positionOf(x, index) + error.what());
  }
}

std::string Unroller::positionOf(const Instruction& x, InstructionIndex index) const {
  return fmt::format("instruction {} `{}`: ", index, printInstruction(program_, x));
}

void Unroller::instruction(const Instruction& x, InstructionIndex index) {
  // For and If are the only instructions with bodies.
  if (const auto* loop = std::get_if<For>(&x.op)) return openLoop(*loop, index);
  if (const auto* branch = std::get_if<If>(&x.op)) return openBranch(x, *branch, index);
  // An Allocate that takes the memory of another value needs no step. A Free needs no step if a
  // later value has taken the memory, or if the memory belongs to a donated input.
  if (const auto* made = std::get_if<Allocate>(&x.op); made && takeMemory(*made)) return;
  if (const auto* freed = std::get_if<Free>(&x.op); freed && isTaken(*freed)) return;
  UnrolledStep step;
  step.instruction = &x;
  step.index = index;
  step.stream = streamOf(x.op).value_or(StreamId());
  fill(step, x.op);
  // The input or the output slot of a collective may have a view although this rank does not access
  // it. For a collective, the accesses therefore use the views of the step. For all other
  // instructions, they use the views of the slots.
  const bool collective = std::holds_alternative<Communicate>(x.op);
  size_t read = 0, written = 0;
  step.accesses.reserve(step.inputs.size() + step.outputs.size());
  forEachSlot(x.op, [&](SlotId id, FieldRole role) {
    if (slot(id).is_scalar || (!role.reads && !role.writes)) return;
    const Access access{id, role.writes, role.borrowed};
    const View& view = !collective    ? viewOf(access.slot)
                       : access.write ? step.outputs[written++]
                                      : step.inputs[read++];
    if (!view.buffer.valid()) return;  // this rank does not access the slot
    checkValue(access, view);
    // The plan checks the strides of the caller's tensors, so they need no check here.
    const int32_t input = unrolled_.buffers[view.buffer].input;
    const bool as_given = input >= 0 && !request_.inputs.empty() &&
                          view.desc.strides == request_.inputs[input].strides;
    // A Free counts as a write, but changes no element.
    const bool writes = access.write && !std::holds_alternative<Free>(x.op);
    if (writes && !as_given) checkWritten(slot(access.slot), view);
    UnrolledAccess bytes{view.buffer, view.byte_offset, view.byte_offset + view.desc.allocBytes(),
                         access.write};
    if (!view.late.empty()) {  // may be anywhere in the buffer
      bytes.begin = 0;
      bytes.end = unrolled_.buffers[view.buffer].bytes;
    }
    step.accesses.push_back(bytes);
  });
  unrolled_.steps.push_back(std::move(step));
}

void Unroller::openLoop(const For& loop, InstructionIndex index) {
  HEDDLE_USER_CHECK(!scope_.has(loop.index), "{} already has a value here", loop.index);
  Frame frame{Frame::Kind::Loop, &loop.body, 0, index + 1, index + 1};
  frame.loop_index = &loop.index;
  frame.at = scope_.evaluate(loop.start);
  frame.stop = scope_.evaluate(loop.stop);
  if (frame.at >= frame.stop) return;
  scope_.set(loop.index, frame.at);
  frames_.push_back(std::move(frame));
}

void Unroller::openBranch(const Instruction& x, const If& branch, InstructionIndex index) {
  const int64_t rhs = scope_.evaluate(branch.predicate.rhs);
  const InstructionIndex then_first = index + 1;
  if (const auto* lhs = std::get_if<Size>(&branch.predicate.lhs)) {
    const bool holds = compare(branch.predicate.compare, scope_.evaluate(*lhs), rhs);
    const InstructionIndex first = holds ? then_first : then_first + lengthOf(branch.then_body);
    frames_.push_back(
        {Frame::Kind::Body, holds ? &branch.then_body : &branch.else_body, 0, first, first});
    return;
  }
  UnrolledStep step;
  step.instruction = &x;
  step.index = index;
  readScalar(step, std::get<SlotId>(branch.predicate.lhs));
  step.known = Scalar(rhs);
  unrolled_.steps.push_back(std::move(step));
  Frame frame{Frame::Kind::Then, &branch.then_body, 0, then_first, then_first};
  frame.branch = &branch;
  frame.jump_step = unrolled_.steps.size() - 1;
  frames_.push_back(std::move(frame));
}

void Unroller::close() {
  Frame& top = frames_.back();
  switch (top.kind) {
    case Frame::Kind::Body:
      frames_.pop_back();
      return;
    case Frame::Kind::Loop:
      return nextTrip(top);
    case Frame::Kind::Then:
      return closeThen();
    case Frame::Kind::Else:
      return closeElse();
  }
}

void Unroller::nextTrip(Frame& loop) {
  if (++loop.at < loop.stop) {
    scope_.set(*loop.loop_index, loop.at);
    loop.next = 0;
    loop.index = loop.first;
    return;
  }
  scope_.unset(*loop.loop_index);
  frames_.pop_back();
}

// Ends the then_body. If there is an else_body, restores the slots and scalars from before the
// branch, and begins the else_body. Otherwise leaves the branch.
void Unroller::closeThen() {
  Frame then = std::move(frames_.back());
  frames_.pop_back();
  if (then.branch->else_body.empty()) {
    for (SlotId id : then.new_scalars) forgetScalar(id);
    return leaveBranch(then);
  }
  UnrolledStep skip;  // jumps over the else_body
  skip.index = unrolled_.steps[then.jump_step].index;
  unrolled_.steps.push_back(std::move(skip));
  unrolled_.steps[then.jump_step].jump = static_cast<int32_t>(unrolled_.steps.size());
  for (const auto& [id, view] : then.before) views_[id] = view;
  const InstructionIndex first = then.first + lengthOf(then.branch->then_body);
  Frame otherwise{Frame::Kind::Else, &then.branch->else_body, 0, first, first};
  otherwise.branch = then.branch;
  otherwise.jump_step = unrolled_.steps.size() - 1;
  otherwise.before = std::move(then.before);
  for (SlotId id : then.new_scalars) scalars_.erase(id);
  otherwise.then_scalars = std::move(then.new_scalars);
  frames_.push_back(std::move(otherwise));
}

void Unroller::closeElse() {
  const Frame otherwise = std::move(frames_.back());
  frames_.pop_back();
  // The scalars and lists that both bodies have defined remain defined.
  Frame* outer = innermostBranch();
  for (SlotId id : otherwise.new_scalars) {
    if (otherwise.then_scalars.count(id) == 0) {
      forgetScalar(id);
    } else if (outer != nullptr) {
      outer->new_scalars.insert(id);
    }
  }
  for (SlotId id : otherwise.then_scalars) {
    if (otherwise.new_scalars.count(id) == 0) forgetScalar(id);
  }
  leaveBranch(otherwise);
}

void Unroller::forgetScalar(SlotId id) {
  scalars_.erase(id);
  branched_.insert(id);
}

Unroller::Frame* Unroller::innermostBranch() {
  for (size_t i = frames_.size(); i-- > 0;) {
    Frame& frame = frames_[i];
    if (frame.kind == Frame::Kind::Then || frame.kind == Frame::Kind::Else) return &frame;
  }
  return nullptr;
}

// Stores the result, because a loop visits its bodies many times.
int32_t Unroller::lengthOf(const std::vector<Instruction>& body) {
  if (const auto found = lengths_.find(&body); found != lengths_.end()) return found->second;
  int32_t length = 0;
  for (const Instruction& x : body) {
    ++length;
    forEachBody(x.op, [&](const std::vector<Instruction>& inner) { length += lengthOf(inner); });
  }
  return lengths_[&body] = length;
}

void Unroller::leaveBranch(const Frame& frame) {
  unrolled_.steps[frame.jump_step].jump = static_cast<int32_t>(unrolled_.steps.size());
  for (const auto& [id, view] : frame.before) {
    // If there is an enclosing branch, define() saves the current view of the slot for the end of
    // that branch. It must save the view from before this branch, which is therefore restored
    // first.
    views_[id] = view;
    define(id, SharedView());
    branched_.insert(id);
  }
}

}  // namespace heddle::host
