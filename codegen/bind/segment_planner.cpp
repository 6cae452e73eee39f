#include "codegen/bind/segment_planner.h"

#include <algorithm>
#include <cstring>

#include "codegen/frame/argument_value.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

template <class T>
void putNumber(std::vector<std::byte>& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

// Writes everything that depends on shapes into a launch: arguments, grid, cleared bytes and the
// offsets of temporaries.
void write(const StageLayout& layout, const KernelNumbers& numbers, LaunchStage& stage) {
  int64_t grid = 0;
  int32_t parts = 0;
  for (const StageLayout::Struct& part : layout.structs) {
    const EntryNumbers& entry = numbers.entries[part.entry];
    const FrameNumbers frame = entry.frame();
    size_t offset = part.offset;
    for (const ArgumentValue& argument : part.values) {
      putNumber(stage.args, offset, valueOf(argument, frame));
      offset += sizeof(int64_t);
    }
    if (layout.first >= 0) {
      putNumber(stage.args, static_cast<size_t>(layout.first) + sizeof(int32_t) * parts++,
                static_cast<int32_t>(grid));
    }
    const bool is_second_half = layout.first < 0 && &part != &layout.structs.front();
    if (is_second_half) continue;  // the first half decides the grid
    grid += entry.grid;
    stage.grid_y = entry.grid_y;
    stage.cleared_bytes = entry.cleared_bytes;
  }
  if (layout.first >= 0) {
    putNumber(stage.args, static_cast<size_t>(layout.first) + sizeof(int32_t) * parts,
              static_cast<int32_t>(grid));
  }
  stage.grid = grid;
  for (size_t i = 0; i < layout.temporaries.size(); ++i) {
    if (layout.temporaries[i] < 0) continue;
    stage.pointers[i].workspace_offset = numbers.temporary_offsets[layout.temporaries[i]];
  }
}

}  // namespace

SegmentPlanner::SegmentPlanner(Fusion segment, Target target)
    : segment_(std::move(segment)), target_(target), analysis_(analyze(segment_)) {
  if (analysis_.parts.empty()) {
    whole_.emplace(segment_, analysis_, target_);
    return;
  }
  for (const AnalyzedPart& part : analysis_.parts) {
    parts_.push_back({PiecePlanner(part.part.segment, part.analysis, target_), part.part.operands,
                      PartSizes(segment_, analysis_, part.part.segment, part.analysis)});
  }
}

int64_t SegmentPlanner::decide(const Operands& operands, KernelNumbers& numbers) {
  // Kernels for different choices have different forms, even if all other facts are equal.
  if (operands.choice != nullptr) numbers.facts += print(*operands.choice);
  if (whole_) {
    return whole_->decide(
        {operands.inputs, operands.outputs, operands.alignments, operands.run, operands.choice},
        numbers);
  }
  int64_t bytes = 0;
  for (Part& part : parts_) bytes = std::max(bytes, decidePart(operands, part, numbers));
  return bytes;
}

int64_t SegmentPlanner::decidePart(const Operands& operands, Part& part,
                                   KernelNumbers& numbers) const {
  DescList::Pointers inputs;
  DescList::Pointers outputs;
  std::vector<int32_t>& alignments = part.alignments;
  alignments.clear();
  const size_t input_count = operands.inputs.size();
  for (int operand : part.operands) {
    const size_t i = operand;
    if (i < input_count) {
      inputs.push_back(&operands.inputs[i]);
    } else {
      outputs.push_back(&operands.outputs[i - input_count]);
    }
    if (!operands.alignments.empty()) alignments.push_back(operands.alignments[i]);
  }
  return part.planner.decidePart({inputs, outputs, alignments, part.sizes.of(operands.run)},
                                 numbers);
}

KernelPlan SegmentPlanner::bound(const Form& form, const KernelNumbers& numbers,
                                 int64_t workspace_bytes, Target target) {
  KernelPlan plan;
  plan.source.target = target;
  plan.workspace_bytes = workspace_bytes;
  plan.stages = form.stages;
  for (size_t i = 0; i < plan.stages.size(); ++i) write(form.layouts[i], numbers, plan.stages[i]);
  return plan;
}

std::optional<SegmentPlanner::Bound> SegmentPlanner::bind(const Operands& operands) {
  std::lock_guard lock(mutex_);
  KernelNumbers& numbers = bound_;
  numbers.facts.clear();
  numbers.entries.clear();
  numbers.temporary_offsets.clear();
  const int64_t bytes = decide(operands, numbers);
  if (numbers.entries.empty()) return Bound{};
  const auto found = numbers_.find(numbers.facts);
  if (found == numbers_.end()) return std::nullopt;
  const Form& form = forms_[found->second];
  return Bound{bound(form, numbers, bytes, target_), found->second};
}

std::optional<int64_t> SegmentPlanner::add(const Operands& operands, const KernelPlan& plan,
                                           std::vector<StageLayout> layouts) {
  std::lock_guard lock(mutex_);
  KernelNumbers numbers;
  const int64_t bytes = decide(operands, numbers);
  if (plan.stages.empty()) return std::nullopt;
  Form form{plan.stages, std::move(layouts)};
  // A later bind() must give exactly the launches that planKernel() would return.
  HEDDLE_CHECK(
      bytes == plan.workspace_bytes && bound(form, numbers, bytes, target_).stages == plan.stages,
      "the form of a kernel of {} gives other launches than planKernel()", segment_.name);
  if (const auto found = numbers_.find(numbers.facts); found != numbers_.end()) {
    return found->second;
  }
  if (forms_.size() == kMostForms) return std::nullopt;
  const auto number = static_cast<int64_t>(forms_.size());
  forms_.push_back(std::move(form));
  numbers_.emplace(std::move(numbers.facts), number);
  return number;
}

KernelNumbers SegmentPlanner::numbers(const Operands& operands) {
  std::lock_guard lock(mutex_);
  KernelNumbers numbers;
  decide(operands, numbers);
  return numbers;
}

}  // namespace heddle::codegen
