#include "host/run/input_overlap.h"

#include <algorithm>

#include "host/unroll/overlap.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

struct Range {
  const std::byte* begin;
  const std::byte* end;
  const Plan::BufferInput* input;
};

const TensorDesc& descOf(const Plan& plan, const Range& range) {
  return plan.input_descs.at(static_cast<size_t>(range.input->input));
}

void checkPair(const Plan& plan, const Range& a, const Range& b) {
  const PlacedTensor first{descOf(plan, a), 0};
  const PlacedTensor second{descOf(plan, b), b.begin - a.begin};
  if (areApart(first, second)) return;
  const auto nameOf = [&](const Range& range) -> const std::string& {
    return plan.buffers[bufferOf(range.input->pointer)].name;
  };
  const Range& written = a.input->written ? a : b;
  userError("inputs {} (%{}) and {} (%{}) overlap in memory, and the run updates %{} in place",
            std::min(a.input->input, b.input->input),
            nameOf(a.input->input < b.input->input ? a : b),
            std::max(a.input->input, b.input->input),
            nameOf(a.input->input < b.input->input ? b : a), nameOf(written));
}

}  // namespace

void checkInputOverlap(const Plan& plan, RunState& state) {
  const auto is_checked = [&](const Plan::BufferInput& input, const std::byte* checked) {
    return state.pointers[input.pointer] == checked;
  };
  if (std::equal(plan.buffer_inputs.begin(), plan.buffer_inputs.end(), state.apart_inputs.begin(),
                 state.apart_inputs.end(), is_checked)) {
    return;
  }
  std::vector<Range> ranges;
  for (const Plan::BufferInput& input : plan.buffer_inputs) {
    const std::byte* begin = state.pointers[input.pointer];
    const int64_t bytes = plan.buffers[bufferOf(input.pointer)].bytes;
    if (bytes > 0) ranges.push_back({begin, begin + bytes, &input});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (size_t k = i + 1; k < ranges.size() && ranges[k].begin < ranges[i].end; ++k) {
      if (ranges[i].input->written || ranges[k].input->written) {
        checkPair(plan, ranges[i], ranges[k]);
      }
    }
  }
  state.apart_inputs.clear();
  for (const Plan::BufferInput& input : plan.buffer_inputs) {
    state.apart_inputs.push_back(state.pointers[input.pointer]);
  }
}

}  // namespace heddle::host
