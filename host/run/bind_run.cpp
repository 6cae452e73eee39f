#include "host/run/bind_run.h"

#include "host/run/input_overlap.h"
#include "ir/base/check.h"
#include "ir/types/exact_scalar.h"

namespace heddle::host {
namespace {

// Returns the value of a late input. If the caller passes no value, returns the default.
int64_t lateValue(const Plan& plan, const std::vector<Argument>& inputs, int32_t input) {
  if (static_cast<size_t>(input) < inputs.size()) {
    return toInt(std::get<Scalar>(inputs[input]));
  }
  for (const Plan::ScalarInput& scalar : plan.scalar_inputs) {
    if (scalar.input == input) return toInt(scalar.default_value);
  }
  HEDDLE_CHECK(false, "input {} has no value", input);
}

// Computes the addresses that depend on late inputs. If such an address is in a buffer of the run,
// an AllocateStep computes it again.
void bindLate(const Plan& plan, const std::vector<Argument>& inputs, RunState& state) {
  for (size_t i = 0; i < plan.late_pointers.size(); ++i) {
    state.late_offsets[i] = 0;
    for (const View::LateTerm& term : plan.late_pointers[i].terms) {
      state.late_offsets[i] += term.bytes * lateValue(plan, inputs, term.input);
    }
    state.setLatePointers(plan.late_pointers[i].base);
  }
}

// Rejects preallocated outputs that overlap inputs or each other. Otherwise the program could write
// an output before it has read an input in the same memory. An output that is copied after all
// inputs were read may overlap inputs, except donated inputs and inputs that the run writes.
void checkOverlap(const Plan& plan, const RunState& state) {
  for (const Plan::Preallocated& output : plan.preallocated) {
    const bool is_copied = !plan.buffers.has(bufferOf(output.pointer));
    const std::byte* begin = state.pointers[output.pointer];
    const std::byte* end = begin + output.bytes;
    for (const Plan::Preallocated& earlier : plan.preallocated) {
      if (&earlier == &output) break;
      const std::byte* other = state.pointers[earlier.pointer];
      HEDDLE_USER_CHECK(end <= other || other + earlier.bytes <= begin,
                        "preallocated output {} overlaps the memory of preallocated output {}",
                        output.output, earlier.output);
    }
    for (const Plan::BufferInput& input : plan.buffer_inputs) {
      if (is_copied && !input.written && !input.donated) continue;
      const Buffer& buffer = plan.buffers[bufferOf(input.pointer)];
      const std::byte* other = state.pointers[input.pointer];
      HEDDLE_USER_CHECK(end <= other || other + buffer.bytes <= begin,
                        "preallocated output {} overlaps the memory of input {} (%{})",
                        output.output, input.input, buffer.name);
    }
  }
}

}  // namespace

void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state) {
  for (const Plan::BufferInput& input : plan.buffer_inputs) {
    const Tensor& tensor = std::get<Tensor>(inputs[input.input]);
    const Buffer& buffer = plan.buffers[bufferOf(input.pointer)];
    HEDDLE_USER_CHECK(tensor.data != nullptr || buffer.bytes == 0, "input {} (%{}) has no data",
                      input.input, buffer.name);
    state.owned_memory.check(tensor.data, "input", input.input, buffer.name);
    state.pointers[input.pointer] = static_cast<std::byte*>(tensor.data);
  }
  for (const Plan::ValueInput& input : plan.value_inputs) {
    const Tensor& tensor = std::get<Tensor>(inputs[input.input]);
    HEDDLE_USER_CHECK(tensor.data != nullptr, "input {} has no data", input.input);
    state.registers[input.out] = loadElement(tensor.data, input.dtype, 0);
  }
  for (const Plan::ScalarInput& input : plan.scalar_inputs) {
    const size_t position = input.input;
    const Scalar& value =
        position < inputs.size() ? std::get<Scalar>(inputs[position]) : input.default_value;
    if (const std::string why = whyNotScalar(input.dtype, value); !why.empty()) {
      userErrorWith(ErrorCode::Type, "input {} (%{}) of type {} {}", input.input, input.name,
                    name(input.dtype), why);
    }
    state.registers[input.out] = roundTo(input.dtype, value);
  }
  for (const Plan::Preallocated& output : plan.preallocated) {
    const Tensor& tensor = preallocated[output.output];
    state.owned_memory.check(tensor.data, "preallocated output", output.output, output.name);
    state.pointers[output.pointer] = static_cast<std::byte*>(tensor.data);
  }
  if (!plan.input_descs.empty()) checkInputOverlap(plan, state);
  bindLate(plan, inputs, state);
  checkOverlap(plan, state);
}

}  // namespace heddle::host
