#include "codegen/emit/plan_kernel.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/emit/kernel_stages.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/plan_writer.h"
#include "codegen/families/columns.h"
#include "codegen/families/loops.h"
#include "codegen/families/rows/row_vectors.h"
#include "codegen/families/rows/rows.h"
#include "codegen/families/shared_launch.h"
#include "codegen/families/squares.h"
#include "codegen/families/sweeps.h"
#include "codegen/frame/argument_value.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/body.h"
#include "codegen/plan/generated.h"
#include "codegen/plan/joint.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Plans one segment without independent parts. A *sweep* is one pass over the elements of the rows.
// If each sweep has its own launches, the Planner creates another Planner per sweep and joins their
// plans. `suffix` makes the names of the entry points of these plans different. `texts` receives
// the texts for people; nullptr: nobody reads them.
class Planner {
 public:
  Planner(const Fusion& segment, const Operands& operands, Target target, const RunSizes& run,
          std::string suffix, const Analysis* analysis, KernelTexts* texts,
          const KernelChoice* choice = nullptr)
      : choice_(choice),
        segment_(segment),
        operands_(operands),
        target_(target),
        suffix_(std::move(suffix)),
        writer_(target, texts),
        analysis_(analysis == nullptr ? analyze(segment) : *analysis),
        extents_(axisExtents(segment, analysis_, operands.inputs, operands.outputs, run)),
        space_(coalesce(segment, analysis_, extents_, operands.inputs, operands.outputs)) {
    for (SpaceTensor& tensor : space_.tensors) tensor.alignment = operandAlignment(tensor.operand);
  }

  void run() {
    // PiecePlanner (codegen/bind/piece_planner.h) must make the same decisions in the same order.
    const std::vector<ExprId> columns = columnReductionsOf(segment_, analysis_);
    if (!columns.empty()) {
      planColumns(columns);
    } else if (plansRows(choice_, needsSeveralSweeps(segment_, analysis_), space_, target_)) {
      planRows();
    } else if (auto squares = mayPlanSquares(choice_) ? squaresOf() : std::nullopt) {
      planTiles(*squares);
    } else {
      planOneSweep();
    }
  }

  KernelPlan& plan() { return writer_.plan; }
  // Returns the layout of each stage of the plan. The layouts number the entries from 0.
  std::vector<StageLayout>& layouts() { return writer_.layouts; }
  // Returns the number of temporaries that the plan uses.
  int32_t temporaries() const { return temporaries_; }
  const KernelChoice& made() const { return made_; }

  // Returns whether the kernel has nothing to store.
  bool isEmpty() const { return codegen::isEmpty(space_); }

  // Adds the segment to shared launches, if it is a pointwise program of items. Otherwise returns
  // false. `operands` and `entry` are arguments of SharedLaunches::add().
  bool addTo(SharedLaunches& shared, const std::vector<int>& operands, int32_t entry) {
    if (space_.hasReduced() || hasUnalignedRows(space_, target_) || squaresOf()) return false;
    LoopRequest request;
    request.entry = shared.bodyName();
    request.space = space_;
    request.computation = makeComputation(segment_, analysis_, space_);
    request.schedule = chooseSharedSchedule(space_, target_);
    dropUnusedTensors(request);
    TileProgram program = buildLoops(segment_, request);
    std::string text = target_ == Target::Cuda ? emitCudaPart(program) : emitCpp(program);
    std::string schedule = writer_.texts() == nullptr ? "" : printProgram(program);
    shared.add(std::move(program), std::move(text), std::move(schedule), operands, entry);
    return true;
  }

 private:
  int32_t operandAlignment(int32_t operand) const { return operands_.alignmentOf(operand); }

  void planOneSweep() {
    LoopPlan d = planLoops(segment_, analysis_, space_, target_, suffix_, choice_);
    made_ = choiceOf(d.first.schedule);
    if (d.in_one_launch) return planRanges(d);
    TileProgram first = buildLoops(segment_, d.first);
    planTiles(first);
    if (isEmpty()) return;
    plan().workspace_bytes = d.workspace_bytes;
    if (d.in_ranges) planCombine(d.second, analysis_);
  }

  // Plans the launch that combines partial results of earlier launches.
  void planCombine(const LoopRequest& request, const Analysis& analysis) {
    TileProgram program = buildLoops(segment_, request);
    writer_.addLaunch(program, segment_, analysis, "\nthen ");
  }

  // Plans one launch that computes both halves of a reduction in ranges.
  void planRanges(LoopPlan& d) {
    const std::string entry = d.first.entry;
    d.first.entry = "heddle_ranges" + suffix_;
    TileProgram first = buildLoops(segment_, d.first);
    TileProgram second = buildLoops(segment_, d.second);
    if (isEmpty()) {
      writer_.describe(first, segment_, analysis_);
      return;
    }
    plan().workspace_bytes = d.workspace_bytes;
    writer_.addRanges(entry, first, second, segment_, analysis_);
  }

  // Plans a tile program of rows if the sizes and the choice permit one. Otherwise plans loops, if
  // one sweep suffices. (On CUDA, one sweep can compute the two reductions of a joint pair.)
  // Otherwise each sweep gets its own plan.
  void planRows() {
    if (!isFamily(choice_, "sweeps")) {
      std::optional<TileProgram> program =
          buildRows(segment_, analysis_, space_, target_, "heddle_rows" + suffix_, choice_, made_);
      if (program) {
        planTiles(*program);
        if (!isEmpty()) plan().workspace_bytes = workspaceOf(program->layout, withRows(space_));
        return;
      }
    }
    if (target_ == Target::Cuda && space_.reducedCount() > 0) {
      analysis_.joint = jointReductions(segment_, analysis_);
    }
    if (!needsSeveralSweeps(segment_, analysis_)) return planOneSweep();
    planSweeps(divideIntoSweeps(segment_, analysis_, extents_));
  }

  void planColumns(const std::vector<ExprId>& columns) {
    if (!isFamily(choice_, "sweeps") && planTogether(columns)) return;
    planSweeps(columnSweeps(segment_, analysis_, extents_, columns));
  }

  // Returns the space of a part of the segment.
  Space spaceOf(const SweepSegment& part, const Analysis& analysis,
                const std::vector<TensorDesc>& temporaries) const {
    const Operands of = operandsOf(part, operands_, temporaries);
    const AxisExtents extents =
        axisExtents(part.segment, analysis, of.inputs, of.outputs, runOf(part.segment, analysis));
    Space space = coalesce(part.segment, analysis, extents, of.inputs, of.outputs);
    for (SpaceTensor& tensor : space.tensors) tensor.alignment = of.alignmentOf(tensor.operand);
    return space;
  }

  // Plans two launches. The first one computes the rows and, for each part of the rows, the sums of
  // the columns (ColumnSums). The second one combines the sums of all parts. Returns false, and
  // changes nothing, if the axes or the sizes do not permit this.
  bool planTogether(const std::vector<ExprId>& columns) {
    const RowPart part = rowPart(segment_, analysis_, extents_, columns);
    const Analysis row_analysis = analyze(part.sweep.segment);
    Space rows = spaceOf(part.sweep, row_analysis, part.operands);
    LoopPlan d;
    const Analysis column_analysis = columnAnalysis(segment_, analysis_, columns);
    d.first.space =
        coalesce(segment_, column_analysis, extents_, operands_.inputs, operands_.outputs);
    for (SpaceTensor& tensor : d.first.space.tensors) {
      tensor.alignment = operandAlignment(tensor.operand);
    }
    const Space space = d.first.space;
    const bool one_axis = rows.extents.size() == rows.kept + 1;
    if (!one_axis || space.kept != 1 || space.extents[0] != rows.extents.back()) return false;
    if (rows.keptCount() == 0 || rows.reducedCount() == 0) return false;
    d.computation = finishColumns(segment_, column_analysis, space);
    markColumns(rows, part.sweep, d.computation.accumulators);
    KernelChoice made;
    const auto build = [&] {
      return buildRows(part.sweep.segment, row_analysis, rows, target_, "heddle_rows" + suffix_,
                       nullptr, made, d.computation.accumulators);
    };
    std::optional<TileProgram> program = build();
    if (!program) return false;
    // The program is built twice: its layout decides the number of parts, and this number decides
    // where the columns lie in the workspace.
    d.first.schedule.target = target_;
    d.first.schedule.splits = partsOf(program->layout, target_, rows);
    d.first.reduced_count = space.reducedCount();
    divideIntoRanges(d, space, suffix_);
    for (SpaceTensor& tensor : rows.tensors) {
      if (tensor.column < 0) continue;
      const int partial = d.first.partials[tensor.column];
      tensor.base = d.first.space.tensors[partial].base;
    }
    program = build();
    made_ = {"columns", std::move(made.parameters)};
    plan().workspace_bytes = d.workspace_bytes;
    writer_.addLaunch(*program, part.sweep.segment, row_analysis);
    KernelPlan row_plan = std::exchange(plan(), {});
    plan().source.target = target_;
    plan().workspace_bytes = std::exchange(row_plan.workspace_bytes, 0);
    appendSweep(plan(), part.sweep, {}, std::move(row_plan));
    planCombine(d.second, column_analysis);
    return true;
  }

  std::optional<TileProgram> squaresOf() {
    const std::optional<SquarePlan> plan = planSquares(space_, target_, choice_);
    if (!plan) return std::nullopt;
    made_ = choiceOf(*plan);
    return buildSquares(segment_, analysis_, *plan, "heddle_squares" + suffix_);
  }

  void planTiles(TileProgram& program) {
    if (isEmpty()) {
      writer_.describe(program, segment_, analysis_);
    } else {
      writer_.addLaunch(program, segment_, analysis_);
    }
  }

  // Plans the sweeps one after another. All sweeps use the same part of the workspace. The
  // temporaries, which later sweeps read, follow this part.
  void planSweeps(const Sweeps& sweeps) {
    made_ = {"sweeps", {}};
    std::vector<KernelPlan> plans;
    for (const SweepSegment& sweep : sweeps.segments) {
      const Operands of = operandsOf(sweep, operands_, sweeps.temporaries);
      const Analysis analysis = analyzeAsOnePart(sweep.segment);
      writer_.say(fmt::format("{}sweep {}: ", plans.empty() ? "" : "\n", plans.size()));
      Planner planner(sweep.segment, of, target_, runOf(sweep.segment, analysis),
                      suffix_ + fmt::format("_p{}_", plans.size()), &analysis, writer_.texts());
      planner.run();
      plan().workspace_bytes = std::max(plan().workspace_bytes, planner.plan().workspace_bytes);
      plans.push_back(std::move(planner.plan()));
      appendLayouts(layouts(), std::move(planner.layouts()), entriesOf(layouts()), temporaries_);
      temporaries_ += planner.temporaries();
    }
    size_t first = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
      noteTemporaries(sweeps.segments[i], plans[i], temporaries_, layouts(), first);
      first += plans[i].stages.size();
    }
    temporaries_ += static_cast<int32_t>(sweeps.temporaries.size());
    std::vector<int64_t> temporary_offsets;
    for (const TensorDesc& temporary : sweeps.temporaries) {
      temporary_offsets.push_back(ceilDiv(plan().workspace_bytes, 16) * 16);
      plan().workspace_bytes = temporary_offsets.back() + temporary.allocBytes();
    }
    for (size_t i = 0; i < plans.size(); ++i) {
      appendSweep(plan(), sweeps.segments[i], temporary_offsets, std::move(plans[i]));
    }
  }

  // Returns the sizes of the run that a part of the segment needs. `analysis` is the analysis of
  // the part.
  RunSizes runOf(const Fusion& part, const Analysis& analysis) const {
    return partSizes(segment_, analysis_, extents_, part, analysis);
  }

  const KernelChoice* const choice_;  // nullptr: the caller has made no choice
  KernelChoice made_;                 // the decisions for the planned kernel
  const Fusion& segment_;
  const Operands& operands_;
  const Target target_;
  const std::string suffix_;
  PlanWriter writer_;
  Analysis analysis_;
  const AxisExtents extents_;
  Space space_;
  int32_t temporaries_ = 0;
};

struct Planned {
  KernelPlan plan;
  std::vector<StageLayout> layouts;
};

// Plans the independent parts of a segment. Pointwise programs of items share launches, and every
// other part has its own launches. A part without elements to store has no launch.
Planned planParts(const Fusion& segment, const Analysis& analysis, const Operands& operands,
                  Target target, const RunSizes& run, KernelTexts* texts) {
  const std::vector<AnalyzedPart>& parts = analysis.parts;
  PlanWriter writer(target, texts);
  KernelPlan& plan = writer.plan;
  SharedLaunches shared(target, "heddle_shared");
  int32_t entries = 0;
  int32_t temporaries = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Fusion& part = parts[i].part.segment;
    const SweepSegment sweep = sweepOf(parts[i].part);
    const Operands of = operandsOf(sweep, operands, {});
    Planner planner(part, of, target, PartSizes(segment, analysis, part, parts[i].analysis).of(run),
                    fmt::format("_part{}_", i), &parts[i].analysis, texts);
    if (planner.isEmpty()) continue;
    if (planner.addTo(shared, parts[i].part.operands, entries)) {
      ++entries;
      continue;
    }
    writer.say(fmt::format("part {}: ", i));
    planner.run();
    writer.say("\n");
    const int32_t count = entriesOf(planner.layouts());
    appendLayouts(writer.layouts, std::move(planner.layouts()), entries, temporaries);
    entries += count;
    temporaries += planner.temporaries();
    plan.workspace_bytes = std::max(plan.workspace_bytes, planner.plan().workspace_bytes);
    appendSweep(plan, sweep, {}, std::move(planner.plan()));
  }
  SharedLaunches::Result result = shared.finish();
  writer.say(result.description);
  writer.addUnnamed(result.bodies);
  for (const SharedKernel& kernel : result.kernels) {
    writer.addUnnamed(target == Target::Cuda ? emitSharedCuda(kernel) : emitSharedCpp(kernel));
  }
  std::ranges::move(result.stages, std::back_inserter(plan.stages));
  std::ranges::move(result.layouts, std::back_inserter(writer.layouts));
  return {std::move(plan), std::move(writer.layouts)};
}

// Plans a segment. Ignores `choice` if the segment has independent parts.
Planned planSegment(const Fusion& segment, const Operands& operands, Target target,
                    const RunSizes& run, const Analysis* analysis, const KernelChoice* choice,
                    KernelTexts* texts) {
  std::optional<Analysis> own;
  if (analysis == nullptr) analysis = &own.emplace(analyze(segment));
  Planned planned;
  if (!analysis->parts.empty()) {
    planned = planParts(segment, *analysis, operands, target, run, texts);
    planned.plan.candidate = "parts";
  } else {
    Planner planner(segment, operands, target, run, "", analysis, texts, choice);
    planner.run();
    planned = {std::move(planner.plan()), std::move(planner.layouts())};
    planned.plan.candidate = print(planner.made());
  }
  planned.plan.source.target = target;
  return planned;
}

}  // namespace

KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments, const RunSizes& run,
                      const Analysis* analysis, std::vector<StageLayout>* layouts,
                      const KernelChoice* choice) {
  HEDDLE_CHECK(alignments.empty() || alignments.size() == inputs.size() + outputs.size(),
               "planKernel got {} alignments for {} operands", alignments.size(),
               inputs.size() + outputs.size());
  Planned planned =
      planSegment(segment, {inputs, outputs, alignments}, target, run, analysis, choice, nullptr);
  KernelPlan& plan = planned.plan;
  HEDDLE_CHECK(planned.layouts.size() == plan.stages.size(), "{} layouts for {} launches",
               planned.layouts.size(), plan.stages.size());
  if (layouts != nullptr) *layouts = std::move(planned.layouts);
  if (target == Target::Cpp) nameEntries(plan);
  for (LaunchStage& stage : plan.stages) {
    // Each CUDA kernel begins with hd::awaitEarlierWork() (openCudaEntry()).
    stage.starts_early = target == Target::Cuda;
    std::vector<std::string>& entries = plan.source.entries;
    if (std::find(entries.begin(), entries.end(), stage.entry) == entries.end()) {
      entries.push_back(stage.entry);
    }
  }
  return std::move(plan);
}

KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments) {
  return planKernel(segment, inputs, outputs, target, alignments,
                    unshardedSizes(segment, inputs, outputs));
}

KernelTexts describeKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                           const std::vector<TensorDesc>& outputs, Target target,
                           const std::vector<int32_t>& alignments, const RunSizes& run,
                           const KernelChoice* choice) {
  KernelTexts texts;
  KernelPlan plan =
      planSegment(segment, {inputs, outputs, alignments}, target, run, nullptr, choice, &texts)
          .plan;
  if (target == Target::Cpp) nameEntries(plan, &texts.kernel);
  return texts;
}

}  // namespace heddle::codegen
