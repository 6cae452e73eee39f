#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/families/sweeps.h"
#include "codegen/kernel.h"
#include "codegen/plan/argument_value.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Returns the launch of a tile program. Moves the arguments of the program to it.
LaunchStage makeStage(TileProgram& program);

// Appends the hash of the text to the names of its entry points. Texts that are compiled as one
// must not share names.
void nameEntries(KernelPlan& plan);

// Appends the layouts of a part of a kernel. The earlier parts have `entries` entry points and
// `temporaries` temporaries.
void appendLayouts(std::vector<StageLayout>& all, std::vector<StageLayout> part, int32_t entries,
                   int32_t temporaries);

// Notes which pointers of the launches of a sweep will point to temporaries. The layouts of the
// launches begin at layouts[first]. Temporary i of the sweep gets the number `temporaries` + i.
void noteTemporaries(const SweepSegment& sweep, const KernelPlan& plan, int32_t temporaries,
                     std::vector<StageLayout>& layouts, size_t first);

}  // namespace heddle::codegen
