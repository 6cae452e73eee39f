#include "codegen/plan/loop_nest.h"

#include <algorithm>

#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// The largest number of blocks of a pointwise kernel. Many blocks with few items keep the memory
// busier than few blocks with many items. If the items need more blocks than this, the threads of a
// block compute further items in a loop.
constexpr int64_t kMostPointwiseBlocks = int64_t{1} << 20;

}  // namespace

LoopNest buildLoopNest(const NestRequest& request) {
  const Computation& computation = request.computation;
  LoopNest nest{buildFrame({request.entry,
                            request.schedule,
                            request.space,
                            {&computation.loop, &computation.finish},
                            computation.accumulators,
                            request.reduced_count}),
                request.schedule, computation, request.partials};
  return nest;
}

LaunchStage makeStage(LoopNest& nest) {
  LaunchStage stage;
  stage.entry = nest.entry;
  nest.args.moveInto(stage);
  setGrid(nest.schedule, nest.kept_items.hi(), stage);
  return stage;
}

void setGrid(const Schedule& s, int64_t kept_items, LaunchStage& stage) {
  if (s.target == Target::Cpp) {
    stage.grid = ceilDiv(kept_items * s.splits, s.items_per_tile);
    return;
  }
  stage.block = s.block;
  if (s.kind == ScheduleKind::Pointwise) {
    stage.grid = std::min(ceilDiv(kept_items, int64_t{s.block} * s.unroll), kMostPointwiseBlocks);
  } else {
    stage.grid = ceilDiv(kept_items, s.block / s.reduce_threads);
    stage.grid_y = static_cast<int32_t>(s.splits);
  }
}

}  // namespace heddle::codegen
