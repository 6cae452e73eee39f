#include <algorithm>

#include "codegen/families/loops.h"
#include "codegen/plan/body.h"
#include "codegen/plan/schedule.h"

namespace heddle::codegen {
namespace {

// Returns the row-major strides of the kept axes. The workspace stores partial results with these
// strides.
AxisNumbers keptStrides(const Space& space) {
  AxisNumbers strides(space.extents.size(), 0);
  int64_t stride = 1;
  for (size_t i = space.kept; i-- > 0;) {
    strides[i] = stride;
    stride *= space.extents[i];
  }
  return strides;
}

// Returns the computation of the second half. Its loop body loads the partial results, which the
// accumulators combine (Accumulator::element). Space::tensors[first_partial] is the first partial
// result.
Computation combineComputation(const Computation& whole, size_t first_partial) {
  Computation second;
  second.finish = whole.finish;
  second.accumulators = whole.accumulators;
  for (Accumulator& acc : second.accumulators) {
    acc.element = NodeId();
    if (!acc.hasState()) continue;
    acc.adds_states = acc.joint != JointKind::None;
    acc.element = second.loop.nodes.endId();
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

// Collects the tensors of `all` that are used, and renumbers them in the order of their first use.
template <class Tensor>
class UsedTensors {
 public:
  explicit UsedTensors(std::vector<Tensor> all) : all_(std::move(all)), fresh_(all_.size(), -1) {}
  void rename(int& index) {
    int& fresh = fresh_[index];
    if (fresh < 0) {
      fresh = static_cast<int>(used_.size());
      used_.push_back(all_[index]);
    }
    index = fresh;
  }
  std::vector<Tensor> take() { return std::move(used_); }

 private:
  std::vector<Tensor> all_;
  std::vector<int> fresh_;
  std::vector<Tensor> used_;
};

}  // namespace

// One block combines the partial results of a group. It reads about 100 bytes per ns. A second
// launch reads with all multiprocessors, but starts later. With 786 KB per group, the statistics of
// the residual block (64 channels) took 1.2 times as long in one launch as in two on an H200.
bool isInOneLaunch(const Schedule& first, const Space& second) {
  constexpr int64_t kMostBytes = int64_t{64} << 10;
  if (first.target == Target::Cpp) return false;
  int64_t bytes = 0;  // of one kept element in one range
  for (const SpaceTensor& tensor : second.tensors) {
    if (tensor.isInWorkspace()) bytes += sizeOf(tensor.dtype);
  }
  const bool inner = first.kind == ScheduleKind::InnerReduction;
  const int64_t elements = int64_t{first.columnsOfBlock()} * (inner ? 1 : first.lanes);
  return bytes * std::min(elements, second.keptCount()) * first.splits <= kMostBytes;
}

Schedule combineSchedule(const Schedule& first, const Space& second) {
  if (!isInOneLaunch(first, second)) return chooseSchedule(second, first.target, false);
  // The elements that a thread loads at once. Few registers suffice, so that the second half does
  // not limit how many blocks of the first half run at the same time.
  constexpr int32_t kLoads = 8;
  Schedule s = first;
  s.splits = 1;
  s.streams = false;
  s.shifted = false;
  if (s.kind == ScheduleKind::InnerReduction) {
    s.lanes = 1;
    s.chunk = 1;
    s.exact = true;
  }
  s.unroll = std::max(kLoads / s.lanes, 1);
  while (s.unroll > 1 && reducedItems(s, second) < int64_t{s.reduce_threads} * s.unroll) {
    s.unroll /= 2;
  }
  return s;
}

LoopPlan planLoops(const Fusion& segment, const Analysis& analysis, const Space& space,
                   Target target, const std::string& suffix, const KernelChoice* choice) {
  LoopPlan d;
  d.computation = makeComputation(segment, analysis, space);
  d.first.entry = "heddle_kernel" + suffix;
  d.first.space = space;
  d.first.computation = d.computation;
  d.first.schedule = chooseSchedule(space, target, true, !analysis.joint.empty(), choice);
  apply(choice, space, true, d.first.schedule);
  d.first.reduced_count = space.reducedCount();
  if (d.first.schedule.splits > 1) {
    divideIntoRanges(d, space, suffix);
    d.in_one_launch = isInOneLaunch(d.first.schedule, d.second.space);
    d.second.schedule = combineSchedule(d.first.schedule, d.second.space);
  }
  dropUnusedTensors(d.first);
  return d;
}

void dropUnusedTensors(LoopRequest& request) {
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

SplitSpaces splitSpaces(const Space& space, const std::vector<DType>& types, int64_t splits) {
  SplitSpaces split{space, space};
  Space& combine = split.second;
  combine.extents.resize(space.kept);
  combine.merged.resize(space.kept);
  for (SpaceTensor& t : combine.tensors) t.strides.resize(combine.extents.size());
  combine.extents.push_back(splits);
  combine.merged.push_back(0);
  for (SpaceTensor& t : combine.tensors) t.strides.push_back(0);
  int64_t bytes = 0;
  for (DType type : types) {
    // Each tensor starts at a multiple of 16 bytes.
    bytes = ceilDiv(bytes, 16) * 16;
    SpaceTensor partial;
    partial.operand = LaunchStage::kWorkspace;
    partial.dtype = type;
    partial.base = bytes / sizeOf(type);
    bytes += splits * space.keptCount() * sizeOf(type);
    partial.part_stride = space.keptCount();
    partial.strides = keptStrides(space);
    partial.output = true;
    split.first.tensors.push_back(partial);
    partial.output = false;
    partial.strides.resize(space.kept);
    partial.strides.push_back(space.keptCount());
    combine.tensors.push_back(partial);
  }
  split.bytes = bytes;
  return split;
}

std::vector<DType> partialTypes(const IdVector<AccumulatorId, Accumulator>& accumulators) {
  std::vector<DType> types;
  for (const Accumulator& acc : accumulators) {
    if (!acc.hasState()) continue;
    for (DType type : memberTypes(acc)) types.push_back(type);
  }
  return types;
}

void divideIntoRanges(LoopPlan& d, const Space& space, const std::string& suffix) {
  d.in_ranges = true;
  const size_t first_partial = space.tensors.size();
  const std::vector<DType> types = partialTypes(d.computation.accumulators);
  SplitSpaces split = splitSpaces(space, types, d.first.schedule.splits);
  d.first.space = std::move(split.first);
  for (size_t i = 0; i < types.size(); ++i) {
    d.first.partials.push_back(static_cast<int>(first_partial + i));
  }
  d.workspace_bytes = split.bytes;
  d.second.entry = "heddle_combine" + suffix;
  d.second.computation = combineComputation(d.computation, first_partial);
  d.second.space = std::move(split.second);
  d.first.computation.finish = {};
  dropUnusedTensors(d.second);
  d.second.schedule = chooseSchedule(d.second.space, d.first.schedule.target, false);
  d.second.reduced_count = d.first.reduced_count;
}

}  // namespace heddle::codegen
