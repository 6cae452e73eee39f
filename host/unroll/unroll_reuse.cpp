// The members of Unroller for values that share memory (Allocate::reuse) and for donated inputs.
#include <algorithm>

#include "host/program/visit.h"
#include "host/unroll/unroller.h"
#include "ir/base/check.h"

namespace heddle::host {

// Marks the donated inputs, and finds the slots that hold the values of preallocated outputs.
void Unroller::donate() {
  for (size_t position : request_.reuse.donated) {
    HEDDLE_USER_CHECK(position < program_.inputs.size(),
                      "there is no input {} to donate: program {} has {}", position, program_.name,
                      program_.inputs.size());
    const SlotId id = program_.inputs[position];
    HEDDLE_USER_CHECK(!slot(id).is_scalar, "input {} (%{}) is a scalar and cannot be donated",
                      position, slot(id).name);
    const BufferId buffer = viewOf(id).buffer;
    HEDDLE_USER_CHECK(!unrolled_.buffers[buffer].donated, "input {} (%{}) is donated twice",
                      position, slot(id).name);
    const auto wanted = elsewhere_.find(buffer);
    if (wanted != elsewhere_.end()) {
      const TensorDesc& given = viewOf(id).desc;
      userError(
          "input {} (%{}) is donated, so it must be allocated as inputDesc() says: {} with strides "
          "{}, got {} with {}",
          position, slot(id).name, str(wanted->second.alloc), str(wanted->second.strides),
          str(given.alloc), str(given.strides));
    }
    unrolled_.buffers[buffer].donated = true;
  }
  if (!request_.reuse.donated.empty()) findPreallocated();
}

void Unroller::findPreallocated() {
  std::map<SlotId, SlotId> viewed;
  for (const Instruction& x : program_.body) {
    // Only an Alias makes a view.
    if (const auto* view = std::get_if<Alias>(&x.op)) viewed[view->out] = view->in;
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    if (i >= request_.reuse.preallocated.size() || !request_.reuse.preallocated[i]) continue;
    SlotId id = program_.outputs[i];
    // If slots are redefined, the chain of views may be a cycle, so the number of steps is limited.
    for (size_t steps = viewed.size(); steps > 0 && viewed.contains(id); --steps) id = viewed[id];
    preallocated_.insert(id);
  }
}

Unroller::BufferValues& Unroller::valuesIn(BufferId buffer) {
  if (!values_.has(buffer)) values_.resize(unrolled_.buffers.size());
  return values_[buffer];
}

// Returns whether the slot `taker` may take the memory of the view. No later value may have taken
// this memory yet. The memory must be a donated input or an allocation of the program. In an
// allocation, the view must begin at the first byte. A preallocated output does not take a donated
// input, because the caller gives the memory of this output.
bool Unroller::isAvailable(const View& view, SlotId taker) {
  if (view.value != valuesIn(view.buffer).latest) return false;
  const Buffer& buffer = unrolled_.buffers[view.buffer];
  if (buffer.origin == Buffer::Origin::Allocated) return view.byte_offset == 0 && view.late.empty();
  return buffer.donated && !preallocated_.contains(taker);
}

// Gives the slot the memory of the first available tensor in Allocate::reuse. Returns false if no
// tensor is available, if the request forbids reuse, or if a preallocated tensor replaces the
// allocation (UnrollRequest::layouts). In a branch that the run decides, no tensor is available.
bool Unroller::takeMemory(const Allocate& x) {
  if (x.reuse.empty() || !request_.reuse.enabled || innermostBranch() != nullptr) return false;
  if (request_.layouts.contains(x.out)) return false;  // replaced by the caller's tensor
  for (SlotId id : x.reuse) {
    const SharedView shared = tensor(id);
    const View& from = *shared;
    if (!isAvailable(from, x.out)) continue;
    const Buffer& buffer = unrolled_.buffers[from.buffer];
    TensorDesc desc = scope_.describe(slot(x.out));
    HEDDLE_USER_CHECK(desc.allocBytes() == buffer.bytes,
                      "%{} takes {} bytes, and the memory of %{}, which it reuses, has {}",
                      slot(x.out).name, desc.allocBytes(), slot(id).name, buffer.bytes);
    BufferValues& values = valuesIn(from.buffer);
    if (values.free) taken_frees_.push_back(*values.free);
    values.free.reset();
    ++values.latest;
    define(x.out, View{from.buffer, 0, std::move(desc), {}, values.latest});
    return true;
  }
  return false;
}

// Returns whether the Free has no effect: a later value has taken the memory of the slot, or the
// memory belongs to a donated input.
bool Unroller::isTaken(const Free& x) {
  const View& view = *tensor(x.slot);
  if (!values_.has(view.buffer)) return false;
  const bool is_reused_input =
      view.value > 0 && unrolled_.buffers[view.buffer].origin == Buffer::Origin::Input;
  return is_reused_input || view.value < values_[view.buffer].latest;
}

// Checks that no later value has been written to the memory of the view. If the access is a write,
// records it.
void Unroller::checkValue(const Access& access, const View& view) {
  if (!values_.has(view.buffer)) return;
  BufferValues& values = values_[view.buffer];
  HEDDLE_USER_CHECK(view.value >= values.written,
                    "%{} is used after a value that reuses its memory has been written",
                    slot(access.slot).name);
  if (access.write) values.written = view.value;
}

// Checks that no output is the original value of a donated input, and that no output has lost its
// value.
void Unroller::checkDonatedOutputs() const {
  for (size_t i = 0; i < unrolled_.outputs.size(); ++i) {
    const View& view = unrolled_.outputs[i];
    if (!view.buffer.valid()) continue;
    const Buffer& buffer = unrolled_.buffers[view.buffer];
    HEDDLE_USER_CHECK(!buffer.donated || view.value > 0,
                      "input {} (%{}) is donated, but output {} (%{}) is {} it", buffer.input,
                      buffer.name, i, slot(program_.outputs[i]).name,
                      program_.reuses.contains(i) ? "stored in" : "a view of");
    HEDDLE_USER_CHECK(!values_.has(view.buffer) || view.value >= values_[view.buffer].written,
                      "the memory of output {} (%{}) has been reused", i,
                      slot(program_.outputs[i]).name);
  }
}

// Removes the Free steps of buffers that were reused afterwards, and corrects the targets of jumps.
void Unroller::dropTakenFrees() {
  if (taken_frees_.empty()) return;
  std::sort(taken_frees_.begin(), taken_frees_.end());
  const auto newIndex = [&](size_t step) {
    const auto earlier = std::lower_bound(taken_frees_.begin(), taken_frees_.end(), step);
    return step - static_cast<size_t>(earlier - taken_frees_.begin());
  };
  size_t kept = taken_frees_.front();
  for (size_t i = kept; i < unrolled_.steps.size(); ++i) {
    if (std::binary_search(taken_frees_.begin(), taken_frees_.end(), i)) continue;
    unrolled_.steps[kept++] = std::move(unrolled_.steps[i]);
  }
  unrolled_.steps.resize(kept);
  for (UnrolledStep& step : unrolled_.steps) {
    if (step.jump >= 0) {
      step.jump = static_cast<int32_t>(newIndex(static_cast<size_t>(step.jump)));
    }
  }
}

}  // namespace heddle::host
