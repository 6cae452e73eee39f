#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/body.h"
#include "codegen/plan/kernel_frame.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// One kernel over one space. The CUDA emitter and the C++ emitter create text from it.
// codegen/plan/schedule.h explains lanes and items. A kernel with reductions has these phases, in
// order:
// 1. Set the accumulators to their identities.
// 2. Run the loop body for the reduced items.
// 3. Combine the accumulators of lanes and threads.
// 4. If `partials` is empty, run the finish body for the kept items. Otherwise, store the
//    accumulators in the workspace.
//
// A kernel without reductions only runs the loop body, for the kept items.
struct LoopNest : KernelFrame {
  Schedule schedule;
  Computation computation;
  // The workspace tensors in which the kernel stores its accumulators, as indices into `accesses`.
  // Empty vector: the kernel stores finished values.
  std::vector<int> partials;
};

struct NestRequest {
  std::string entry;
  Schedule schedule;
  Space space;  // if `partials` is not empty, Space::tensors ends with the tensors of the partials
  Computation computation;
  std::vector<int> partials;  // becomes LoopNest::partials
  int64_t reduced_count = 1;  // number of elements that an average combines
};

LoopNest buildLoopNest(const NestRequest& request);

// Returns the launch of the nest's entry point. Moves the arguments out of the nest.
LaunchStage makeStage(LoopNest& nest);

// Sets the grid (Cuda: also the block) of a launch that has `kept_items` items along the kept axes.
void setGrid(const Schedule& schedule, int64_t kept_items, LaunchStage& stage);

}  // namespace heddle::codegen
