#pragma once

#include <cstdint>
#include <vector>

#include "codegen/plan/argument_value.h"

namespace heddle::codegen {

// What the arguments of one launch (LaunchStage::args) contain. All launches of one kernel text
// have equal layouts. Their arguments differ only in the numbers of their entries.
struct StageLayout {
  // The argument struct of an entry point, or of one part of a shared launch.
  struct Struct {
    int32_t entry = 0;   // the entry points and parts of a kernel are numbered in their order
    int32_t offset = 0;  // bytes, into LaunchStage::args
    std::vector<ArgumentValue> values;
  };
  std::vector<Struct> structs;
  // Offset of SharedKernel's field `first` (codegen/families/shared_launch.h), whose numbers follow
  // from the grids of the parts. -1: the launch is not shared, and has one struct.
  int32_t first = -1;
  // Per element of LaunchStage::pointers: the temporary of the kernel that it points to. -1: it
  // points to no temporary. Empty: no element points to a temporary.
  std::vector<int32_t> temporaries = {};
};

}  // namespace heddle::codegen
