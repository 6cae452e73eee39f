#include "codegen/bind/segment_planner.h"

#include <algorithm>
#include <cstring>

#include "codegen/families/columns.h"
#include "codegen/families/rows.h"
#include "codegen/families/squares.h"
#include "codegen/plan/body.h"
#include "codegen/plan/generated.h"
#include "codegen/plan/loop_nest.h"
#include "codegen/plan/two_stages.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Returns whether the text of a kernel would contain a number that only a run knows: the width of a
// pad.
bool hasOpenWidths(const Fusion& segment) {
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->name != "pad") continue;
    for (std::string_view attr : {"lows", "highs"}) {
      for (const Size& width : expr.attr<std::vector<Size>>(attr)) {
        if (!width.isConstant()) return true;
      }
    }
  }
  return false;
}

// Returns a space with all operands that can be in a space of the segment. Only its operands
// matter, not its axes.
Space anySpace(const Fusion& segment, const Analysis& analysis) {
  std::vector<TensorDesc> descs;
  for (const auto* values : {&segment.inputs(), &segment.outputs()}) {
    for (ValueId id : *values) {
      const TensorView& tensor = segment.tensor(id);
      descs.push_back(denseDesc(tensor.dtype, std::vector<int64_t>(tensor.rank(), 2)));
    }
  }
  const auto first_output = descs.begin() + static_cast<std::ptrdiff_t>(segment.inputs().size());
  const std::vector<TensorDesc> inputs(descs.begin(), first_output);
  const std::vector<TensorDesc> outputs(first_output, descs.end());
  const size_t axes = analysis.reduced.size();
  return coalesce(segment, analysis, {std::vector<int64_t>(axes, 2), std::vector<int64_t>(axes, 0)},
                  inputs, outputs);
}

enum class StrideClass : char { Zero, One, Other };
char classOf(int64_t stride) {
  return static_cast<char>(stride == 0   ? StrideClass::Zero
                           : stride == 1 ? StrideClass::One
                                         : StrideClass::Other);
}

void appendNumber(int64_t number, std::string& facts) {
  facts.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Appends everything about a space and a schedule on which the text of a loop depends. The emitters
// read no other number: IndexExpr::str() prints names of arguments, not their values.
void appendFacts(const FrameNumbers& numbers, std::string& facts) {
  const Space& space = numbers.space;
  const Schedule& s = numbers.schedule;
  const bool is_cuda = s.target == Target::Cuda;
  facts += static_cast<char>(space.kept);
  facts += static_cast<char>(space.extents.size());
  facts += static_cast<char>(space.tensors.size());
  facts += static_cast<char>(s.kind);
  facts += static_cast<char>(s.exact);
  facts += static_cast<char>(is_cuda && needsWideIndex(numbers));
  for (int32_t number : {s.lanes, s.unroll, s.block, s.reduce_threads}) appendNumber(number, facts);
  for (const SpaceTensor& tensor : space.tensors) {
    facts += static_cast<char>(hasAlignedItems(tensor, numbers));
    for (int64_t stride : tensor.strides) facts += classOf(stride);
  }
  for (const SpaceCoordinate& c : space.coordinates) facts += static_cast<char>(c.axis);
  for (const IndexedTensor& tensor : space.indexed) {
    for (int64_t stride : tensor.strides) facts += classOf(stride);
  }
}

}  // namespace

std::string SegmentPlanner::Loops::facts() const {
  std::string facts;
  facts.reserve(128);
  facts += static_cast<char>(nests.size());
  for (const Nest& nest : nests) appendFacts({nest.space, nest.schedule, reduced_count}, facts);
  return facts;
}

SegmentPlanner::SegmentPlanner(Fusion segment, Target target)
    : segment_(std::move(segment)), target_(target), analysis_(analyze(segment_)) {
  has_forms_ = analysis_.parts.empty() && columnReductionsOf(segment_, analysis_).empty() &&
               !needsSeveralPasses(segment_, analysis_) && generatedValues(segment_).empty() &&
               !hasOpenWidths(segment_);
  if (!has_forms_) return;
  NestRequest request;
  request.space = anySpace(segment_, analysis_);
  request.computation = makeComputation(segment_, analysis_, request.space);
  dropUnusedTensors(request);
  for (const SpaceTensor& tensor : request.space.tensors) tensors_.push_back(tensor.operand);
  for (const IndexedTensor& tensor : request.space.indexed) indexed_.push_back(tensor.operand);
}

Space SegmentPlanner::spaceFor(DescList inputs, DescList outputs,
                               const std::vector<int32_t>& alignments) const {
  const AxisExtents extents = axisExtents(segment_, analysis_, inputs, outputs, {});
  Space space = coalesce(segment_, analysis_, extents, inputs, outputs);
  for (SpaceTensor& tensor : space.tensors) {
    if (!alignments.empty()) tensor.alignment = alignments.at(static_cast<size_t>(tensor.operand));
  }
  return space;
}

// Removes the unused tensors from the space of a kernel of one launch, as dropUnusedTensors() does.
void SegmentPlanner::dropUnused(Space& space) const {
  const auto keep = [](auto& tensors, const std::vector<int>& operands) {
    const auto has_operand = [](const auto& tensor, int operand) {
      return tensor.operand == operand;
    };
    if (std::equal(tensors.begin(), tensors.end(), operands.begin(), operands.end(), has_operand)) {
      return;
    }
    std::remove_reference_t<decltype(tensors)> used;
    for (int operand : operands) {
      used.push_back(*std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return has_operand(tensor, operand);
      }));
    }
    tensors = std::move(used);
  };
  keep(space.tensors, tensors_);
  keep(space.indexed, indexed_);
}

std::optional<SegmentPlanner::Loops> SegmentPlanner::loopsFor(Space space) const {
  if (hasUnalignedRows(space, target_) || mayHaveSquares(space)) return std::nullopt;
  Loops loops;
  if (isEmpty(space)) return loops;
  loops.reduced_count = space.reducedCount();
  Schedule schedule = chooseSchedule(space, target_, true);
  if (schedule.splits == 1) {
    dropUnused(space);
    loops.nests.push_back({std::move(space), schedule});
    return loops;
  }
  Decision d = decideLoops(segment_, analysis_, space, target_, "");
  loops.workspace_bytes = d.workspace_bytes;
  for (NestRequest* nest : {&d.first, &d.second}) {
    loops.nests.push_back({std::move(nest->space), nest->schedule});
  }
  return loops;
}

std::optional<int64_t> SegmentPlanner::numberOf(const std::string& facts) const {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < forms_.size(); ++i) {
    if (forms_[i]->facts == facts) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

KernelPlan SegmentPlanner::bound(const Form& form, const Loops& loops) const {
  KernelPlan plan;
  plan.source.target = target_;
  plan.workspace_bytes = loops.workspace_bytes;
  plan.stages.reserve(form.entries.size());
  for (size_t i = 0; i < form.entries.size(); ++i) {
    const Entry& entry = form.entries[i];
    const Loops::Nest& nest = loops.nests[i];
    const FrameNumbers numbers{nest.space, nest.schedule, loops.reduced_count};
    LaunchStage& stage = plan.stages.emplace_back(entry.stage);
    stage.args.resize(entry.arguments.size() * sizeof(int64_t));
    std::byte* at = stage.args.data();
    for (const ArgumentValue& argument : entry.arguments) {
      const int64_t value = valueOf(argument, numbers);
      std::memcpy(at, &value, sizeof(value));
      at += sizeof(value);
    }
    setGrid(nest.schedule, keptItems(nest.schedule, nest.space), stage);
  }
  return plan;
}

std::optional<SegmentPlanner::Bound> SegmentPlanner::bind(
    DescList inputs, DescList outputs, const std::vector<int32_t>& alignments) const {
  if (!has_forms_) return std::nullopt;
  const std::optional<Loops> loops = loopsFor(spaceFor(inputs, outputs, alignments));
  if (!loops) return std::nullopt;
  if (loops->nests.empty()) return Bound{};
  const std::optional<int64_t> number = numberOf(loops->facts());
  if (!number) return std::nullopt;
  // The lock protects only the list: a form does not change or move after it was added.
  const Form* form = nullptr;
  {
    std::lock_guard lock(mutex_);
    form = forms_[static_cast<size_t>(*number)].get();
  }
  return Bound{bound(*form, *loops), *number};
}

std::optional<int64_t> SegmentPlanner::add(DescList inputs, DescList outputs,
                                           const std::vector<int32_t>& alignments,
                                           const KernelPlan& plan) {
  if (!has_forms_ || plan.stages.empty()) return std::nullopt;
  const Space space = spaceFor(inputs, outputs, alignments);
  const std::optional<Loops> loops = loopsFor(space);
  if (!loops) return std::nullopt;
  auto form = std::make_unique<Form>();
  form->facts = loops->facts();
  if (const std::optional<int64_t> number = numberOf(form->facts)) return number;
  const Decision d = decideLoops(segment_, analysis_, space, target_, "");
  for (const LaunchStage& stage : plan.stages) {
    const LoopNest nest = buildLoopNest(form->entries.empty() ? d.first : d.second);
    Entry& entry = form->entries.emplace_back(Entry{stage, {}});
    entry.stage.args.clear();
    for (const ArgumentLayout::Field& field : nest.args.fields()) {
      entry.arguments.push_back(field.value);
    }
  }
  HEDDLE_CHECK(
      loops->nests.size() == plan.stages.size() && bound(*form, *loops).stages == plan.stages,
      "the form of a kernel of {} does not give its launches", segment_.name);
  std::lock_guard lock(mutex_);
  if (forms_.size() == kMostForms) return std::nullopt;
  forms_.push_back(std::move(form));
  return static_cast<int64_t>(forms_.size()) - 1;
}

}  // namespace heddle::codegen
