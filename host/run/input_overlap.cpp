#include "host/run/input_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "host/unroll/overlap.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using Range = RunState::InputRange;

bool isExclusive(const Range& range) { return range.input->written || range.input->donated; }

void checkPair(const Plan& plan, const Range& a, const Range& b) {
  const TensorDesc& first = plan.input_allocations.at(a.input->input);
  const TensorDesc& second = plan.input_allocations.at(b.input->input);
  const Sharing sharing = sharingOf({first, 0}, {second, b.begin - a.begin});
  if (sharing == Sharing::Nothing) return;
  const auto nameOf = [&](const Range& range) -> const std::string& {
    return plan.buffers[bufferOf(range.input->pointer)].name;
  };
  const Range& exclusive = isExclusive(a) ? a : b;
  userError(
      "inputs {} (%{}) and {} (%{}) {}, and {}", std::min(a.input->input, b.input->input),
      nameOf(a.input->input < b.input->input ? a : b), std::max(a.input->input, b.input->input),
      nameOf(a.input->input < b.input->input ? b : a),
      sharing == Sharing::Bytes ? "overlap in memory"
                                : "have memory ranges that overlap, and their strides do not show "
                                  "that no element is in both",
      fmt::format(fmt::runtime(exclusive.input->donated ? "%{} is donated"
                                                        : "the run updates %{} in place"),
                  nameOf(exclusive)));
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
  std::vector<Range>& ranges = state.input_ranges;
  ranges.clear();
  for (const Plan::BufferInput& input : plan.buffer_inputs) {
    const std::byte* begin = state.pointers[input.pointer];
    const int64_t bytes = plan.buffers[bufferOf(input.pointer)].bytes;
    if (bytes > 0) ranges.push_back({begin, begin + bytes, &input});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (size_t k = i + 1; k < ranges.size() && ranges[k].begin < ranges[i].end; ++k) {
      if (isExclusive(ranges[i]) || isExclusive(ranges[k])) {
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
