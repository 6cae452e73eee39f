#include "codegen/emit/plan_kernel.h"

#include <algorithm>

#include "codegen/emit/kernel_text.h"
#include "codegen/families/passes.h"
#include "codegen/families/rows.h"
#include "codegen/families/squares.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/body.h"
#include "codegen/plan/joint.h"
#include "codegen/plan/loop_nest.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "codegen/text_hash.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

// Everything decided about a segment of one pass for one set of shapes. `second` combines the
// partial results of `first` when the reduced range is split.
struct Decision {
  Computation computation;
  NestRequest first;
  bool two_stages = false;
  NestRequest second;
  int64_t workspace_bytes = 0;
};

// Row-major strides of the kept axes: how partial results lie in the workspace.
std::vector<int64_t> keptStrides(const Space& space) {
  std::vector<int64_t> strides(space.extents.size(), 0);
  int64_t stride = 1;
  for (int i = space.kept - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= space.extents[static_cast<size_t>(i)];
  }
  return strides;
}

// The loop body of the second stage: each accumulator's partial results are its elements.
Computation combineComputation(const Computation& whole, size_t first_partial) {
  Computation second;
  second.finish = whole.finish;
  second.accumulators = whole.accumulators;
  for (Accumulator& acc : second.accumulators) {
    acc.element = 0;
    if (!acc.hasState()) continue;
    acc.adds_states = acc.joint != JointKind::None;
    acc.element = static_cast<int>(second.loop.nodes.size());
    for (DType type : memberTypes(acc)) {
      Node load;
      load.kind = Node::Kind::Load;
      load.dtype = type;
      load.index = static_cast<int>(first_partial + second.loop.nodes.size());
      second.loop.nodes.push_back(load);
    }
  }
  return second;
}

// Which of `all` are used, in the order of their first use, and their new indices.
template <class Tensor>
class UsedTensors {
 public:
  explicit UsedTensors(std::vector<Tensor> all) : all_(std::move(all)), fresh_(all_.size(), -1) {}
  void rename(int& index) {
    int& fresh = fresh_[static_cast<size_t>(index)];
    if (fresh < 0) {
      fresh = static_cast<int>(used_.size());
      used_.push_back(all_[static_cast<size_t>(index)]);
    }
    index = fresh;
  }
  std::vector<Tensor> take() { return std::move(used_); }

 private:
  std::vector<Tensor> all_;
  std::vector<int> fresh_;
  std::vector<Tensor> used_;
};

// Leaves only the tensors that the bodies of `request` touch, and renames them in the bodies.
void dropUnusedTensors(NestRequest& request) {
  UsedTensors<SpaceTensor> tensors(request.space.tensors);
  UsedTensors<IndexedTensor> indexed(request.space.indexed);
  for (Body* body : {&request.computation.loop, &request.computation.finish}) {
    for (Node& node : body->nodes) {
      if (node.kind == Node::Kind::Load) tensors.rename(node.index);
      if (node.kind == Node::Kind::LoadAt) indexed.rename(node.index);
    }
    for (Store& store : body->stores) tensors.rename(store.tensor);
  }
  for (int& partial : request.partials) tensors.rename(partial);
  request.space.tensors = tensors.take();
  request.space.indexed = indexed.take();
}

void splitInTwo(Decision& d, const Space& space, const std::string& suffix) {
  d.two_stages = true;
  int64_t splits = d.first.schedule.splits;
  size_t first_partial = space.tensors.size();
  Space combine = space;
  combine.extents.resize(static_cast<size_t>(space.kept));
  for (SpaceTensor& t : combine.tensors) t.strides.resize(combine.extents.size());
  combine.extents.push_back(splits);
  for (SpaceTensor& t : combine.tensors) t.strides.push_back(0);
  int64_t bytes = 0;
  std::vector<DType> types;  // of all partial results
  for (const Accumulator& acc : d.computation.accumulators) {
    if (!acc.hasState()) continue;
    for (DType type : memberTypes(acc)) types.push_back(type);
  }
  for (DType type : types) {
    // The rows of each tensor start at a multiple of 16 bytes.
    bytes = ceilDiv(bytes, 16) * 16;
    SpaceTensor partial;
    partial.operand = LaunchStage::kWorkspace;
    partial.dtype = type;
    partial.base = bytes / sizeOf(type);
    bytes += splits * space.keptCount() * sizeOf(type);
    partial.strides = keptStrides(space);
    partial.output = true;
    d.first.partials.push_back(static_cast<int>(d.first.space.tensors.size()));
    d.first.space.tensors.push_back(partial);
    partial.output = false;
    partial.strides.resize(static_cast<size_t>(space.kept));
    partial.strides.push_back(space.keptCount());
    combine.tensors.push_back(partial);
  }
  d.workspace_bytes = bytes;
  d.second.entry = "heddle_combine" + suffix;
  d.second.computation = combineComputation(d.computation, first_partial);
  d.second.space = std::move(combine);
  d.first.computation.finish = {};
  dropUnusedTensors(d.second);
  d.second.schedule = chooseSchedule(d.second.space, d.first.schedule.target, false);
  d.second.reduced_count = d.first.reduced_count;
}

Decision decide(const Fusion& segment, const Analysis& analysis, const Space& space, Target target,
                const std::string& suffix) {
  Decision d;
  d.computation = makeComputation(segment, analysis, space);
  d.first.entry = "heddle_kernel" + suffix;
  d.first.space = space;
  d.first.computation = d.computation;
  d.first.schedule = chooseSchedule(space, target, true);
  d.first.reduced_count = space.reducedCount();
  if (d.first.schedule.splits > 1) splitInTwo(d, space, suffix);
  dropUnusedTensors(d.first);
  return d;
}

// Short blocks keep memory busier than long-lived ones that step through the tensor; beyond this
// many they step all the same.
constexpr int64_t kMostPointwiseBlocks = int64_t{1} << 20;

LaunchStage makeStage(LoopNest& nest) {
  LaunchStage stage;
  stage.entry = nest.entry;
  nest.args.moveInto(stage);
  const Schedule& s = nest.schedule;
  int64_t kept = nest.kept_items.hi();
  if (s.target == Target::Cpp) {
    stage.grid = ceilDiv(kept * s.splits, s.items_per_tile);
    return stage;
  }
  stage.block = s.block;
  if (s.kind == ScheduleKind::Pointwise) {
    stage.grid = std::min(ceilDiv(kept, int64_t{s.block} * s.unroll), kMostPointwiseBlocks);
  } else {
    stage.grid = ceilDiv(kept, s.block / s.reduce_threads);
    stage.grid_y = static_cast<int32_t>(s.splits);
  }
  return stage;
}

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
  stage.grid = ceilDiv(rows, layout.rows);
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
          std::string suffix = "")
      : segment_(segment),
        inputs_(inputs),
        outputs_(outputs),
        target_(target),
        alignments_(std::move(alignments)),
        suffix_(std::move(suffix)),
        analysis_(analyze(segment)),
        space_(coalesce(segment, analysis_, inputs, outputs)) {
    plan_.source.target = target;
    for (SpaceTensor& tensor : space_.tensors) tensor.alignment = operandAlignment(tensor.operand);
  }

  void run() {
    if (needsSeveralPasses(segment_, analysis_) || hasUnalignedRows(space_, target_)) {
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

  bool isEmpty() const {
    return space_.keptCount() == 0 || (!space_.hasReduced() && space_.tensors.empty());
  }

  void planOnePass() {
    Decision d = decide(segment_, analysis_, space_, target_, suffix_);
    description_ = describe(d.first.schedule, d.first.space);
    if (d.two_stages) description_ += "\nthen " + describe(d.second.schedule, d.second.space);
    if (isEmpty()) return;
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
    needsSeveralPasses(segment_, analysis_) ? planPasses() : planOnePass();
  }

  std::optional<TileProgram> squaresOf() const {
    return buildSquares(segment_, analysis_, space_, target_, "heddle_squares" + suffix_);
  }

  void planTiles(TileProgram& program) {
    description_ = printProgram(program);
    if (isEmpty()) return;
    plan_.source.text = target_ == Target::Cuda ? emitCuda(program) : emitCpp(program);
    plan_.stages.push_back(makeStage(program));
  }

  // The temporaries come after the part of the workspace that the passes use one after another.
  void planPasses() {
    const Passes passes = divideIntoPasses(segment_, analysis_, inputs_, outputs_);
    std::vector<KernelPlan> plans;
    for (const PassSegment& pass : passes.segments) {
      const std::vector<TensorDesc> inputs = descsOf(passes, pass.inputs);
      const std::vector<TensorDesc> outputs = descsOf(passes, pass.outputs);
      const std::vector<int32_t> alignments = alignmentsOf(pass);
      Planner planner(pass.segment, inputs, outputs, target_, alignments,
                      fmt::format("_p{}_", plans.size()));
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

  std::vector<TensorDesc> descsOf(const Passes& passes,
                                  const std::vector<PassSegment::Operand>& operands) const {
    std::vector<TensorDesc> descs;
    for (const PassSegment::Operand& operand : operands) {
      const auto i = static_cast<size_t>(operand.operand);
      if (operand.temporary >= 0) {
        descs.push_back(passes.temporaries[static_cast<size_t>(operand.temporary)]);
      } else {
        descs.push_back(i < inputs_.size() ? inputs_[i] : outputs_[i - inputs_.size()]);
      }
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
  Space space_;
  KernelPlan plan_;
  std::string description_;
};

}  // namespace

KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments) {
  HEDDLE_CHECK(alignments.empty() || alignments.size() == inputs.size() + outputs.size(),
               "planKernel got {} alignments for {} operands", alignments.size(),
               inputs.size() + outputs.size());
  Planner planner(segment, inputs, outputs, target, alignments);
  planner.run();
  KernelPlan plan = std::move(planner.plan());
  if (target == Target::Cpp) nameEntries(plan);
  for (const LaunchStage& stage : plan.stages) plan.source.entries.push_back(stage.entry);
  return plan;
}

std::string describeSchedule(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                             const std::vector<TensorDesc>& outputs, Target target,
                             const std::vector<int32_t>& alignments) {
  Planner planner(segment, inputs, outputs, target, alignments);
  planner.run();
  return planner.description();
}

}  // namespace heddle::codegen
