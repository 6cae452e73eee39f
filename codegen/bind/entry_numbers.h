#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/families/rows/row_candidates.h"
#include "codegen/frame/argument_value.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// The numbers of one *entry* for one set of shapes. An entry is an entry point of a kernel, one
// part of a shared launch, or one half of a CUDA reduction in ranges (StageLayout in
// codegen/frame/argument_value.h).
struct EntryNumbers {
  Space space;
  Schedule schedule;
  int64_t reduced_count = 1;  // number of elements that an average combines
  int64_t squares = 0;        // number of squares; 0: the entry has none
  // Members of LaunchStage with the same names. `grid` counts only the blocks or tiles of the
  // entry.
  int64_t grid = 1;
  int32_t grid_y = 1;
  int32_t block = 1;
  int64_t cleared_bytes = 0;
  // Only the time model (codegen/bind/launch_work.h) and reductionOrder()
  // (codegen/bind/candidate_numbers.h) use the members below.
  std::optional<RowCandidate> rows = {};  // set: the entry processes rows
  int32_t shared_bytes = 0;               // as LaunchStage::shared_bytes
  int64_t ops = 0;                        // opsOf() of the piece (PiecePlanner) of the entry
  RowSweeps sweeps = {};                  // `reads` is 1 if the kernel holds each row on the chip

  FrameNumbers frame() const { return {space, schedule, reduced_count, squares}; }
};

// The properties of a kernel that depend on the shapes of its operands.
struct KernelNumbers {
  // The form of the kernel (SegmentPlanner) as bytes: its schedules, and the yes/no facts about the
  // shapes. Kernels of a segment with equal facts have equal texts and equal layouts of arguments
  // (StageLayout).
  std::string facts;
  std::vector<EntryNumbers> entries;  // in the order of StageLayout::Struct::entry
  std::vector<int64_t>
      temporary_offsets;  // per temporary (StageLayout): its first byte in the workspace
};

}  // namespace heddle::codegen
