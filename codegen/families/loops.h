#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/body.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// The family of kernels that pass over the elements of the space once, item by item
// (codegen/plan/schedule.h). It serves the segments for which one sweep suffices, except those that
// the families "rows" or "squares" compute faster (docs/kernels.md).

// What buildLoops() creates a program from.
struct LoopRequest {
  std::string entry;
  Schedule schedule;
  Space space;  // if `partials` is not empty, Space::tensors ends with the tensors of the partials
  Computation computation;
  // The tensors of the workspace in which the program stores the states of its accumulators, as
  // indices into Space::tensors. Empty vector: the program stores finished values.
  std::vector<int> partials;
  int64_t reduced_count = 1;  // number of elements that an average combines
};

// Returns the program of a request for `segment`. Its tiles have the names of the segment's inputs.
TileProgram buildLoops(const Fusion& segment, const LoopRequest& request);

// The decisions about a kernel of this family, for one set of shapes. If the reduced items are
// divided into ranges (codegen/plan/schedule.h), the kernel has two *halves*: `first` stores
// *partial results* of each range in the workspace, and `second` combines them. On CUDA, one launch
// usually computes both halves (in_one_launch). Their schedules then have equal blocks and equal
// kept items: the blocks with the same first coordinate in the grid are a *group*. They store all
// partial results of some kept items, and the last block of the group to finish combines them.
// Otherwise each half is a launch.
struct LoopPlan {
  Computation computation;
  LoopRequest first;
  bool in_ranges = false;
  bool in_one_launch = false;  // one launch computes both halves
  LoopRequest second;
  int64_t workspace_bytes = 0;
};

// Returns whether one launch computes both halves of a reduction (LoopPlan). `first` is the
// schedule of the first half, and `second` is the space of the second half.
bool isInOneLaunch(const Schedule& first, const Space& second);
// Returns the schedule of the second half.
Schedule combineSchedule(const Schedule& first, const Space& second);

// Makes all decisions about a segment. The names of the entry points end with `suffix`. A choice of
// the family "loops" changes the schedule of the first half (apply() in codegen/plan/schedule.h).
LoopPlan planLoops(const Fusion& segment, const Analysis& analysis, const Space& space,
                   Target target, const std::string& suffix, const KernelChoice* choice);

// The spaces of the two halves of a reduction that is divided into ranges.
struct SplitSpaces {
  Space first;
  Space second;
  int64_t bytes = 0;  // size of the workspace
};
// Returns the spaces for `splits` ranges. Both spaces list the tensors of `space`, and then one
// tensor of partial results for each of `types` (partialTypes()).
SplitSpaces splitSpaces(const Space& space, const std::vector<DType>& types, int64_t splits);

// Returns the types of the partial results of one range: the types of all members of the states of
// `accumulators`, in order.
std::vector<DType> partialTypes(const IdVector<AccumulatorId, Accumulator>& accumulators);

// Divides the reduced items of `space` into d.first.schedule.splits ranges. `d.first` then stores
// the states of its accumulators as partial results, and `d.second` combines them. The schedule of
// `d.second` is that of a launch of its own.
void divideIntoRanges(LoopPlan& d, const Space& space, const std::string& suffix);

// Removes the tensors that the bodies and `partials` of `request` do not access. Renumbers the
// other tensors in the bodies and in `partials`.
void dropUnusedTensors(LoopRequest& request);

}  // namespace heddle::codegen
