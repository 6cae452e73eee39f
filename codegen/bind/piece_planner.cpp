#include "codegen/bind/piece_planner.h"

#include <algorithm>

#include "codegen/bind/facts.h"
#include "codegen/bind/launch_work.h"
#include "codegen/families/loops.h"
#include "codegen/families/rows/row_vectors.h"
#include "codegen/plan/generated.h"
#include "codegen/plan/joint.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {

struct PiecePlanner::Children {
  Sweeps sweeps;
  std::deque<Analysis> analyses;
  std::deque<PiecePlanner> planners;
  std::vector<PartSizes> sizes;  // per sweep
};

struct PiecePlanner::Joined {
  Analysis analysis;
  bool several_sweeps = false;
  std::optional<LoopTensors> loops = {};
  std::unique_ptr<Children> sweeps = {};
};

struct PiecePlanner::ColumnParts {
  RowPart rows;
  Analysis row_analysis;
  std::optional<PartSizes> sizes;  // sizes of the row part
  Analysis column_analysis;
  IdVector<AccumulatorId, Accumulator> accumulators;
  LoopTensors loops;
  ByClasses<RowDemands> demands;
};

namespace {

int32_t alignmentAt(const std::vector<int32_t>& alignments, int32_t operand) {
  return alignments.empty() ? kFullAlignment : alignments.at(operand);
}

void setAlignments(const std::vector<int32_t>& alignments, Space& space) {
  for (SpaceTensor& t : space.tensors) t.alignment = alignmentAt(alignments, t.operand);
}

// The operands of a sweep. The lists point to operands of the piece and to descriptors of the
// temporaries.
struct SweepOperands {
  std::vector<const TensorDesc*> inputs;
  std::vector<const TensorDesc*> outputs;
  std::vector<int32_t> alignments;
};

SweepOperands sweepOperands(const SweepSegment& sweep, const DescList& inputs,
                            const DescList& outputs, const std::vector<int32_t>& alignments,
                            const std::vector<TensorDesc>& temporaries) {
  SweepOperands of;
  const auto add = [&](const SweepSegment::Operand& operand,
                       std::vector<const TensorDesc*>& descs) {
    if (operand.temporary >= 0) {
      descs.push_back(&temporaries[operand.temporary]);
      of.alignments.push_back(kFullAlignment);
      return;
    }
    const size_t i = operand.operand;
    descs.push_back(i < inputs.size() ? &inputs[i] : &outputs[i - inputs.size()]);
    of.alignments.push_back(alignmentAt(alignments, operand.operand));
  };
  for (const SweepSegment::Operand& operand : sweep.inputs) add(operand, of.inputs);
  for (const SweepSegment::Operand& operand : sweep.outputs) add(operand, of.outputs);
  return of;
}

void addLoop(FactKind kind, Space space, const Schedule& schedule, int64_t reduced_count,
             KernelNumbers& numbers) {
  EntryNumbers& entry = numbers.entries.emplace_back();
  LaunchStage stage;
  setGrid(schedule, keptItems(schedule, space), stage);
  entry.grid = stage.grid;
  entry.grid_y = stage.grid_y;
  entry.block = stage.block;
  entry.space = std::move(space);
  entry.schedule = schedule;
  entry.reduced_count = reduced_count;
  appendKind(kind, numbers.facts);
  appendFacts(entry, numbers.facts);
}

void addRows(const RowCandidate& candidate, Space rows, Target target, const RowSweeps& sweeps,
             KernelNumbers& numbers) {
  EntryNumbers& entry = numbers.entries.emplace_back();
  entry.schedule = rowSchedule(candidate.layout, rows, target);
  entry.reduced_count = rows.reducedCount();
  LaunchStage stage;
  setGrid(candidate.layout, target, keptItems(entry.schedule, rows), entry.schedule.items_per_tile,
          stage);
  entry.grid = stage.grid;
  entry.grid_y = stage.grid_y;
  entry.block = stage.block;
  entry.shared_bytes = stage.shared_bytes;
  entry.cleared_bytes = stage.cleared_bytes;
  entry.rows = candidate;
  entry.sweeps = sweeps;
  if (!candidate.looped) entry.sweeps.reads = 1;
  entry.space = std::move(rows);
  appendKind(FactKind::Rows, numbers.facts);
  appendFacts(candidate, numbers.facts);
  appendFacts(entry, numbers.facts);
}

// Adds the half that combines partial results. `first`: see combineSchedule(), or nullptr.
void addCombine(const LoopTensors& loops, Space space, int64_t reduced_count, Target target,
                const Schedule* first, KernelNumbers& numbers) {
  keepOnly(loops.second, space);
  const Schedule schedule =
      first != nullptr ? combineSchedule(*first, space) : chooseSchedule(space, target, false);
  addLoop(FactKind::Loop, std::move(space), schedule, reduced_count, numbers);
}

}  // namespace

PiecePlanner::PiecePlanner(const Fusion& segment, const Analysis& analysis, Target target)
    : segment_(segment),
      analysis_(analysis),
      target_(target),
      columns_(columnReductionsOf(segment, analysis)),
      several_sweeps_(needsSeveralSweeps(segment, analysis)),
      ops_(opsOf(segment)) {}

PiecePlanner::~PiecePlanner() = default;
PiecePlanner::PiecePlanner(PiecePlanner&&) noexcept = default;

Space PiecePlanner::spaceOf(const Given& given, const AxisExtents& extents) const {
  Space space = coalesce(segment_, analysis_, extents, given.inputs, given.outputs);
  setAlignments(given.alignments, space);
  return space;
}

int64_t PiecePlanner::decide(const Given& given, KernelNumbers& numbers) {
  const size_t first = numbers.entries.size();
  const AxisExtents extents =
      axisExtents(segment_, analysis_, given.inputs, given.outputs, given.run);
  const int64_t bytes = columns_.empty()
                            ? decideSpace(given, extents, spaceOf(given, extents), numbers)
                            : decideColumns(given, extents, numbers);
  setOps(first, numbers);
  return bytes;
}

int64_t PiecePlanner::decidePart(const Given& given, KernelNumbers& numbers) {
  const size_t first = numbers.entries.size();
  const int64_t bytes = decideEntries(given, numbers);
  setOps(first, numbers);
  return bytes;
}

int64_t PiecePlanner::decideEntries(const Given& given, KernelNumbers& numbers) {
  const AxisExtents extents =
      axisExtents(segment_, analysis_, given.inputs, given.outputs, given.run);
  Space space = spaceOf(given, extents);
  if (isEmpty(space)) {
    appendKind(FactKind::Empty, numbers.facts);
    return 0;
  }
  if (!columns_.empty()) return decideColumns(given, extents, numbers);
  if (space.hasReduced() || hasUnalignedRows(space, target_)) {
    return decideSpace(given, extents, std::move(space), numbers);
  }
  if (decideSquares(space, nullptr, numbers)) return 0;
  if (!loops_) loops_ = loopTensors(makeComputation(segment_, analysis_, space), space);
  const Schedule schedule = chooseSharedSchedule(space, target_);
  keepOnly(loops_->whole, space);
  addLoop(FactKind::SharedLoop, std::move(space), schedule, 1, numbers);
  return 0;
}

int64_t PiecePlanner::decideSpace(const Given& given, const AxisExtents& extents, Space space,
                                  KernelNumbers& numbers) {
  if (plansRows(given.choice, several_sweeps_, space, target_)) {
    return decideRows(given, extents, std::move(space), numbers);
  }
  if (mayPlanSquares(given.choice) && decideSquares(space, given.choice, numbers)) return 0;
  return decideLoops(std::move(space), analysis_, loops_, given.choice, numbers);
}

int64_t PiecePlanner::decideLoops(Space space, const Analysis& analysis,
                                  std::optional<LoopTensors>& loops, const KernelChoice* choice,
                                  KernelNumbers& numbers) {
  if (isEmpty(space)) {
    appendKind(FactKind::Empty, numbers.facts);
    return 0;
  }
  if (!loops) loops = loopTensors(makeComputation(segment_, analysis, space), space);
  const int64_t reduced_count = space.reducedCount();
  Schedule schedule = chooseSchedule(space, target_, true, !analysis.joint.empty(), choice);
  apply(choice, space, true, schedule);
  if (schedule.splits == 1) {
    keepOnly(loops->whole, space);
    addLoop(FactKind::Loop, std::move(space), schedule, reduced_count, numbers);
    return 0;
  }
  SplitSpaces split = splitSpaces(space, loops->partials, schedule.splits);
  keepOnly(loops->first, split.first);
  const auto kind = isInOneLaunch(schedule, split.second) ? FactKind::Ranges : FactKind::Loop;
  addLoop(kind, std::move(split.first), schedule, reduced_count, numbers);
  addCombine(*loops, std::move(split.second), reduced_count, target_, &schedule, numbers);
  return split.bytes;
}

// Does the same as Planner::planRows() (codegen/emit/plan_kernel.cpp).
int64_t PiecePlanner::decideRows(const Given& given, const AxisExtents& extents, Space space,
                                 KernelNumbers& numbers) {
  Space rows = withRows(space);
  std::optional<RowCandidate> chosen;
  RowSweeps sweeps;
  if (!isFamily(given.choice, "sweeps")) {
    const RowDemands& demands = demandsOf(rows, demands_, segment_, analysis_, {});
    chosen = chooseRows(rows, target_, demands, given.choice);
    sweeps = demands.sweeps;
  }
  if (chosen) {
    if (isEmpty(space)) {
      appendKind(FactKind::Empty, numbers.facts);
      return 0;
    }
    const int64_t bytes = workspaceOf(chosen->layout, rows);
    addRows(*chosen, std::move(rows), target_, sweeps, numbers);
    return bytes;
  }
  if (target_ == Target::Cuda && space.reducedCount() > 0) {
    if (!joined_) {
      joined_ = std::make_unique<Joined>(Joined{analysis_});
      joined_->analysis.joint = jointReductions(segment_, analysis_);
      joined_->several_sweeps = needsSeveralSweeps(segment_, joined_->analysis);
    }
    if (!joined_->several_sweeps) {
      return decideLoops(std::move(space), joined_->analysis, joined_->loops, given.choice,
                         numbers);
    }
    if (!joined_->sweeps) {
      joined_->sweeps = childrenOf(divideIntoSweeps(segment_, joined_->analysis, extents));
    }
    return decideSweeps(given, extents, *joined_->sweeps, numbers);
  }
  if (!several_sweeps_) {
    return decideLoops(std::move(space), analysis_, loops_, given.choice, numbers);
  }
  if (!sweeps_) sweeps_ = childrenOf(divideIntoSweeps(segment_, analysis_, extents));
  return decideSweeps(given, extents, *sweeps_, numbers);
}

bool PiecePlanner::decideSquares(const Space& space, const KernelChoice* choice,
                                 KernelNumbers& numbers) {
  std::optional<SquarePlan> plan = planSquares(space, target_, choice);
  if (!plan || !fitsInSquares(*plan)) return false;
  if (isEmpty(space)) {
    appendKind(FactKind::Empty, numbers.facts);
    return true;
  }
  EntryNumbers& entry = numbers.entries.emplace_back();
  LaunchStage stage;
  setGrid(plan->layout, target_, plan->schedule.items_per_tile, stage);
  entry.grid = stage.grid;
  entry.block = stage.block;
  entry.squares = squaresOf(plan->layout);
  entry.schedule = plan->schedule;
  entry.space = std::move(plan->space);
  appendKind(FactKind::Squares, numbers.facts);
  appendFacts(*plan, numbers.facts);
  appendFacts(entry, numbers.facts);
  return true;
}

bool PiecePlanner::fitsInSquares(const SquarePlan& plan) {
  std::string classes;
  appendClasses(plan.space, classes);
  for (const auto& [known, fits] : squares_fit_) {
    if (known == classes) return fits;
  }
  const bool fits = buildSquares(segment_, analysis_, plan, "").has_value();
  squares_fit_.emplace_back(std::move(classes), fits);
  return fits;
}

const RowDemands& PiecePlanner::demandsOf(
    const Space& rows, ByClasses<RowDemands>& demands, const Fusion& segment,
    const Analysis& analysis, const IdVector<AccumulatorId, Accumulator>& columns) const {
  std::string classes;
  appendClasses(rows, classes);
  for (const auto& [known, demand] : demands) {
    if (known == classes) return demand;
  }
  RowDemands demand = rowDemands(segment, analysis, rows, target_, columns);
  return demands.emplace_back(std::move(classes), std::move(demand)).second;
}

int64_t PiecePlanner::decideColumns(const Given& given, const AxisExtents& extents,
                                    KernelNumbers& numbers) {
  if (!isFamily(given.choice, "sweeps")) {
    if (const auto bytes = decideTogether(given, extents, numbers)) return *bytes;
  }
  if (!column_sweeps_) {
    column_sweeps_ = childrenOf(columnSweeps(segment_, analysis_, extents, columns_));
  }
  return decideSweeps(given, extents, *column_sweeps_, numbers);
}

// Does the same as Planner::planTogether() (codegen/emit/plan_kernel.cpp).
std::optional<int64_t> PiecePlanner::decideTogether(const Given& given, const AxisExtents& extents,
                                                    KernelNumbers& numbers) {
  if (!together_) {
    together_ = std::make_unique<ColumnParts>();
    together_->rows = rowPart(segment_, analysis_, extents, columns_);
    together_->row_analysis = analyze(together_->rows.sweep.segment);
    together_->sizes.emplace(segment_, analysis_, together_->rows.sweep.segment,
                             together_->row_analysis);
    together_->column_analysis = columnAnalysis(segment_, analysis_, columns_);
  }
  ColumnParts& parts = *together_;
  const Fusion& row_segment = parts.rows.sweep.segment;
  std::vector<TensorDesc> operands;
  for (ExprId id : columns_) {
    operands.push_back(denseDescOf(segment_, analysis_, extents, segment_.expr(id).inputs[0]));
  }
  const SweepOperands of =
      sweepOperands(parts.rows.sweep, given.inputs, given.outputs, given.alignments, operands);
  const AxisExtents row_extents =
      axisExtents(row_segment, parts.row_analysis, of.inputs, of.outputs,
                  parts.sizes->of(segment_, analysis_, extents));
  Space rows = coalesce(row_segment, parts.row_analysis, row_extents, of.inputs, of.outputs);
  setAlignments(of.alignments, rows);
  Space space = coalesce(segment_, parts.column_analysis, extents, given.inputs, given.outputs);
  setAlignments(given.alignments, space);
  const bool one_axis = rows.extents.size() == rows.kept + 1;
  if (!one_axis || space.kept != 1 || space.extents[0] != rows.extents.back()) return std::nullopt;
  if (rows.keptCount() == 0 || rows.reducedCount() == 0) return std::nullopt;
  if (parts.accumulators.empty()) {
    const Computation finish = finishColumns(segment_, parts.column_analysis, space);
    parts.loops = loopTensors(finish, space);
    parts.accumulators = finish.accumulators;
  }
  markColumns(rows, parts.rows.sweep, parts.accumulators);
  const RowDemands& demands =
      demandsOf(rows, parts.demands, row_segment, parts.row_analysis, parts.accumulators);
  const std::optional<RowCandidate> chosen = chooseRows(rows, target_, demands, nullptr);
  if (!chosen) return std::nullopt;
  appendKind(FactKind::Columns, numbers.facts);
  // The layout decides how many parts of the rows store sums of columns (ColumnSums). The number of
  // parts decides where the sums lie in the workspace.
  const size_t first_partial = space.tensors.size();
  const int64_t reduced_count = space.reducedCount();
  SplitSpaces split =
      splitSpaces(space, parts.loops.partials, partsOf(chosen->layout, target_, rows));
  for (SpaceTensor& tensor : rows.tensors) {
    if (tensor.column < 0) continue;
    tensor.base = split.first.tensors[first_partial + static_cast<size_t>(tensor.column)].base;
  }
  addRows(*chosen, std::move(rows), target_, demands.sweeps, numbers);
  addCombine(parts.loops, std::move(split.second), reduced_count, target_, nullptr, numbers);
  return split.bytes;
}

// All sweeps use the same bytes at the start of the workspace. The temporaries follow these bytes.
int64_t PiecePlanner::decideSweeps(const Given& given, const AxisExtents& extents,
                                   Children& children, KernelNumbers& numbers) const {
  appendKind(FactKind::Sweeps, numbers.facts);
  std::vector<TensorDesc> temporaries;
  for (ValueId id : children.sweeps.temporary_values) {
    temporaries.push_back(denseDescOf(segment_, analysis_, extents, id));
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < children.planners.size(); ++i) {
    const SweepOperands of = sweepOperands(children.sweeps.segments[i], given.inputs, given.outputs,
                                           given.alignments, temporaries);
    const RunSizes run = children.sizes[i].of(segment_, analysis_, extents);
    bytes = std::max(
        bytes, children.planners[i].decide({of.inputs, of.outputs, of.alignments, run}, numbers));
  }
  for (const TensorDesc& temporary : temporaries) {
    numbers.temporary_offsets.push_back(ceilDiv(bytes, 16) * 16);
    bytes = numbers.temporary_offsets.back() + temporary.allocBytes();
  }
  return bytes;
}

std::unique_ptr<PiecePlanner::Children> PiecePlanner::childrenOf(Sweeps sweeps) const {
  auto children = std::make_unique<Children>();
  children->sweeps = std::move(sweeps);
  for (const SweepSegment& sweep : children->sweeps.segments) {
    const Analysis& analysis = children->analyses.emplace_back(analyzeAsOnePart(sweep.segment));
    children->planners.emplace_back(sweep.segment, analysis, target_);
    children->sizes.emplace_back(segment_, analysis_, sweep.segment, analysis);
  }
  return children;
}

}  // namespace heddle::codegen
