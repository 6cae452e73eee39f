#include "codegen/emit/plan_kernel.h"

#include <algorithm>

#include "codegen/emit/kernel_text.h"
#include "codegen/emit/two_stages.h"
#include "codegen/families/columns.h"
#include "codegen/families/passes.h"
#include "codegen/families/rows.h"
#include "codegen/families/squares.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/body.h"
#include "codegen/plan/generated.h"
#include "codegen/plan/joint.h"
#include "codegen/plan/loop_nest.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "codegen/text_hash.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

LaunchStage makeStage(TileProgram& program) {
  LaunchStage stage;
  stage.entry = program.frame.entry;
  program.frame.args.moveInto(stage);
  const int64_t rows = program.frame.kept_items.hi();
  const RowLayout& layout = program.layout;
  if (program.target == Target::Cpp) {
    const int64_t items = program.square ? squaresOf(*program.square) : rows;
    stage.grid = ceilDiv(items, program.frame.items_per_tile.hi());
    return stage;
  }
  if (program.square) {
    stage.block = kSquareThreads;
    stage.grid = squaresOf(*program.square);
    return stage;
  }
  stage.block = layout.rows * layout.threads;
  stage.grid = layout.blocks > 0 ? layout.blocks : ceilDiv(rows, layout.rows);
  return stage;
}

void replaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Texts that are compiled as one must not share names: each gets the hash of its own.
void nameEntries(KernelPlan& plan) {
  const std::string suffix = fmt::format("_{:016x}", hash64(plan.source.text));
  for (LaunchStage& stage : plan.stages) {
    replaceAll(plan.source.text, stage.entry, stage.entry + suffix);
    stage.entry += suffix;
  }
}

// Plans one segment. Entries and descriptions are those of one plan, so that a plan of several
// passes can join them.
class Planner {
 public:
  Planner(const Fusion& segment, const std::vector<TensorDesc>& inputs,
          const std::vector<TensorDesc>& outputs, Target target, std::vector<int32_t> alignments,
          const std::vector<TensorDesc>& generated, std::string suffix = "",
          const Analysis* analysis = nullptr)
      : segment_(segment),
        inputs_(inputs),
        outputs_(outputs),
        target_(target),
        alignments_(std::move(alignments)),
        suffix_(std::move(suffix)),
        analysis_(analysis == nullptr ? analyze(segment) : *analysis),
        extents_(axisExtents(segment, analysis_, inputs, outputs, generated)),
        space_(coalesce(segment, analysis_, extents_, inputs, outputs)) {
    plan_.source.target = target;
    for (SpaceTensor& tensor : space_.tensors) tensor.alignment = operandAlignment(tensor.operand);
  }

  void run() {
    const std::vector<ExprId> columns = columnReductionsOf(segment_, analysis_);
    if (!columns.empty()) {
      planColumns(columns);
    } else if (needsSeveralPasses(segment_, analysis_) || hasUnalignedRows(space_, target_)) {
      planRows();
    } else if (auto squares = squaresOf()) {
      planTiles(*squares);
    } else {
      planOnePass();
    }
  }

  KernelPlan& plan() { return plan_; }
  const std::string& description() const { return description_; }

 private:
  int32_t operandAlignment(int32_t operand) const {
    return alignments_.empty() ? kFullAlignment : alignments_.at(static_cast<size_t>(operand));
  }

  void planOnePass() {
    Decision d = decideLoops(segment_, analysis_, space_, target_, suffix_);
    description_ = describe(d.first.schedule, d.first.space);
    if (d.two_stages) description_ += "\nthen " + describe(d.second.schedule, d.second.space);
    if (isEmpty(space_)) return;
    plan_.workspace_bytes = d.workspace_bytes;
    for (const NestRequest* request : {&d.first, &d.second}) {
      if (request == &d.second && !d.two_stages) break;
      LoopNest nest = buildLoopNest(*request);
      plan_.source.text += target_ == Target::Cuda ? emitCuda(nest) : emitCpp(nest);
      plan_.stages.push_back(makeStage(nest));
    }
  }

  void planRows() {
    std::optional<TileProgram> program =
        buildRows(segment_, analysis_, space_, target_, "heddle_rows" + suffix_);
    if (program) return planTiles(*program);
    if (target_ == Target::Cuda && space_.reducedCount() > 0) {
      analysis_.joint = jointReductions(segment_, analysis_);
    }
    if (!needsSeveralPasses(segment_, analysis_)) return planOnePass();
    planPasses(divideIntoPasses(segment_, analysis_, extents_));
  }

  void planColumns(const std::vector<ExprId>& columns) {
    if (planTogether(columns)) return;
    planPasses(columnPasses(segment_, analysis_, extents_, columns));
  }

  // The space of a part of the segment.
  Space spaceOf(const PassSegment& part, const Analysis& analysis,
                const std::vector<TensorDesc>& temporaries) const {
    const std::vector<TensorDesc> inputs = descsOf(temporaries, part.inputs);
    const std::vector<TensorDesc> outputs = descsOf(temporaries, part.outputs);
    const AxisExtents extents =
        axisExtents(part.segment, analysis, inputs, outputs, generatedOf(part.segment));
    Space space = coalesce(part.segment, analysis, extents, inputs, outputs);
    const std::vector<int32_t> alignments = alignmentsOf(part);
    for (SpaceTensor& tensor : space.tensors) {
      tensor.alignment = alignments.at(static_cast<size_t>(tensor.operand));
    }
    return space;
  }

  // Plans a launch that computes rows and adds to columns, and one that combines the parts of the
  // columns. Returns false, and changes nothing, if the layouts or the sizes do not permit it.
  bool planTogether(const std::vector<ExprId>& columns) {
    const RowPart part = rowPart(segment_, analysis_, extents_, columns);
    const Analysis row_analysis = analyze(part.pass.segment);
    Space rows = spaceOf(part.pass, row_analysis, part.operands);
    Decision d;
    const Analysis column_analysis = columnAnalysis(segment_, analysis_, columns);
    d.first.space = coalesce(segment_, column_analysis, extents_, inputs_, outputs_);
    for (SpaceTensor& tensor : d.first.space.tensors) {
      tensor.alignment = operandAlignment(tensor.operand);
    }
    const Space space = d.first.space;
    const bool one_axis = rows.extents.size() == static_cast<size_t>(rows.kept) + 1;
    if (!one_axis || space.kept != 1 || space.extents[0] != rows.extents.back()) return false;
    if (rows.keptCount() == 0 || rows.reducedCount() == 0) return false;
    d.computation = finishColumns(segment_, column_analysis, space);
    markColumns(rows, part.pass, d.computation.accumulators);
    const auto build = [&] {
      return buildRows(part.pass.segment, row_analysis, rows, target_, "heddle_rows" + suffix_,
                       d.computation.accumulators);
    };
    std::optional<TileProgram> program = build();
    if (!program) return false;
    // The layout decides the number of parts, and that decides where the columns lie.
    d.first.schedule.target = target_;
    d.first.schedule.splits = partsOf(program->layout, target_, rows);
    d.first.reduced_count = space.reducedCount();
    splitInTwo(d, space, suffix_);
    for (SpaceTensor& tensor : rows.tensors) {
      if (tensor.column < 0) continue;
      const int partial = d.first.partials[static_cast<size_t>(tensor.column)];
      tensor.base = d.first.space.tensors[static_cast<size_t>(partial)].base;
    }
    program = build();
    description_ = printProgram(*program) + "\nthen " + describe(d.second.schedule, d.second.space);
    plan_.workspace_bytes = d.workspace_bytes;
    KernelPlan row_plan;
    row_plan.source.text = target_ == Target::Cuda ? emitCuda(*program) : emitCpp(*program);
    row_plan.stages.push_back(makeStage(*program));
    append(part.pass, {}, row_plan);
    LoopNest nest = buildLoopNest(d.second);
    plan_.source.text += target_ == Target::Cuda ? emitCuda(nest) : emitCpp(nest);
    plan_.stages.push_back(makeStage(nest));
    return true;
  }

  // The outputs of `part` without memory are columns.
  static void markColumns(Space& space, const PassSegment& part,
                          const std::vector<Accumulator>& accumulators) {
    for (SpaceTensor& tensor : space.tensors) {
      if (!tensor.output) continue;
      const size_t output = static_cast<size_t>(tensor.operand) - part.inputs.size();
      tensor.column = part.outputs[output].temporary;
      if (tensor.column < 0) continue;
      tensor.dtype = accumulators[static_cast<size_t>(tensor.column)].type;
      std::fill(tensor.strides.begin(), tensor.strides.end(), 0);
      tensor.strides.back() = 1;
      tensor.part_stride = space.extents.back();
    }
  }

  std::optional<TileProgram> squaresOf() const {
    return buildSquares(segment_, analysis_, space_, target_, "heddle_squares" + suffix_);
  }

  void planTiles(TileProgram& program) {
    description_ = printProgram(program);
    if (isEmpty(space_)) return;
    plan_.source.text = target_ == Target::Cuda ? emitCuda(program) : emitCpp(program);
    plan_.stages.push_back(makeStage(program));
  }

  // The temporaries come after the part of the workspace that the passes use one after another.
  void planPasses(const Passes& passes) {
    std::vector<KernelPlan> plans;
    for (const PassSegment& pass : passes.segments) {
      const std::vector<TensorDesc> inputs = descsOf(passes.temporaries, pass.inputs);
      const std::vector<TensorDesc> outputs = descsOf(passes.temporaries, pass.outputs);
      const std::vector<int32_t> alignments = alignmentsOf(pass);
      Planner planner(pass.segment, inputs, outputs, target_, alignments, generatedOf(pass.segment),
                      suffix_ + fmt::format("_p{}_", plans.size()));
      planner.run();
      description_ += fmt::format("{}pass {}: {}", plans.empty() ? "" : "\n", plans.size(),
                                  planner.description());
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, planner.plan().workspace_bytes);
      plans.push_back(std::move(planner.plan()));
    }
    std::vector<int64_t> places;
    for (const TensorDesc& temporary : passes.temporaries) {
      places.push_back(ceilDiv(plan_.workspace_bytes, 16) * 16);
      plan_.workspace_bytes = places.back() + temporary.allocBytes();
    }
    for (size_t i = 0; i < plans.size(); ++i) append(passes.segments[i], places, plans[i]);
  }

  std::vector<TensorDesc> descsOf(const std::vector<TensorDesc>& temporaries,
                                  const std::vector<PassSegment::Operand>& operands) const {
    std::vector<TensorDesc> descs;
    for (const PassSegment::Operand& operand : operands) {
      const auto i = static_cast<size_t>(operand.operand);
      if (operand.temporary >= 0) {
        descs.push_back(temporaries[static_cast<size_t>(operand.temporary)]);
      } else {
        descs.push_back(i < inputs_.size() ? inputs_[i] : outputs_[i - inputs_.size()]);
      }
    }
    return descs;
  }

  // The descriptors of the values of a part of the segment that have generated axes.
  std::vector<TensorDesc> generatedOf(const Fusion& part) const {
    std::vector<TensorDesc> descs;
    for (ValueId id : generatedValues(part)) {
      const std::optional<ValueId> whole = segment_.find(part.value(id).name);
      HEDDLE_CHECK(whole.has_value(), "%{} is no value of the segment", part.value(id).name);
      descs.push_back(denseDescOf(segment_, analysis_, extents_, *whole));
    }
    return descs;
  }

  std::vector<int32_t> alignmentsOf(const PassSegment& pass) const {
    std::vector<int32_t> alignments;
    for (const auto* operands : {&pass.inputs, &pass.outputs}) {
      for (const PassSegment::Operand& operand : *operands) {
        alignments.push_back(operand.temporary >= 0 ? kFullAlignment
                                                    : operandAlignment(operand.operand));
      }
    }
    return alignments;
  }

  void append(const PassSegment& pass, const std::vector<int64_t>& places, KernelPlan& part) {
    const auto operandOf = [&](int32_t operand) -> const PassSegment::Operand& {
      const auto i = static_cast<size_t>(operand);
      return i < pass.inputs.size() ? pass.inputs[i] : pass.outputs[i - pass.inputs.size()];
    };
    plan_.source.text += part.source.text;
    for (LaunchStage& stage : part.stages) {
      for (LaunchStage::PointerPatch& patch : stage.pointers) {
        if (patch.operand == LaunchStage::kWorkspace) continue;
        const PassSegment::Operand& operand = operandOf(patch.operand);
        patch.operand = operand.temporary < 0 ? operand.operand : LaunchStage::kWorkspace;
        if (operand.temporary >= 0) patch.place = places[static_cast<size_t>(operand.temporary)];
      }
      for (LaunchStage::ScalarPatch& patch : stage.scalars) {
        patch.operand = operandOf(patch.operand).operand;
      }
      plan_.stages.push_back(std::move(stage));
    }
  }

  const Fusion& segment_;
  const std::vector<TensorDesc>& inputs_;
  const std::vector<TensorDesc>& outputs_;
  const Target target_;
  const std::vector<int32_t> alignments_;
  const std::string suffix_;
  Analysis analysis_;
  const AxisExtents extents_;
  Space space_;
  KernelPlan plan_;
  std::string description_;
};

}  // namespace

KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments,
                      const std::vector<TensorDesc>& generated, const Analysis* analysis) {
  HEDDLE_CHECK(alignments.empty() || alignments.size() == inputs.size() + outputs.size(),
               "planKernel got {} alignments for {} operands", alignments.size(),
               inputs.size() + outputs.size());
  Planner planner(segment, inputs, outputs, target, alignments, generated, "", analysis);
  planner.run();
  KernelPlan plan = std::move(planner.plan());
  if (target == Target::Cpp) nameEntries(plan);
  for (const LaunchStage& stage : plan.stages) plan.source.entries.push_back(stage.entry);
  return plan;
}

KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments) {
  return planKernel(segment, inputs, outputs, target, alignments,
                    unshardedGenerated(segment, inputs, outputs));
}

std::string describeSchedule(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                             const std::vector<TensorDesc>& outputs, Target target,
                             const std::vector<int32_t>& alignments,
                             const std::vector<TensorDesc>& generated) {
  Planner planner(segment, inputs, outputs, target, alignments, generated);
  planner.run();
  return planner.description();
}

}  // namespace heddle::codegen
