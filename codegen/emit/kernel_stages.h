#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/families/sweeps.h"
#include "codegen/frame/argument_value.h"
#include "codegen/kernel.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Returns the launch of a kernel whose text is from emitCudaRanges(). Moves the arguments of both
// halves into the launch.
LaunchStage makeStage(const std::string& entry, TileProgram& first, TileProgram& second);

// Appends the hash of the source text to the names of the entry points, in the text and in the
// stages. Different texts then define different names, so that a caller can compile several texts
// as one. Also changes the names in `copy`, another text that contains them; nullptr: there is
// none.
void nameEntries(KernelPlan& plan, std::string* copy = nullptr);

// Returns the number of entries (StageLayout) of the launches.
int32_t entriesOf(const std::vector<StageLayout>& layouts);

// Appends `part`, the layouts of some launches of a kernel, to `all`. In `part`, entries and
// temporaries (StageLayout) are numbered from 0. The function adds `entries` to the numbers of
// entries and `temporaries` to the numbers of temporaries. The caller passes how many entries and
// temporaries the kernel's other launches have so far.
void appendLayouts(std::vector<StageLayout>& all, std::vector<StageLayout> part, int32_t entries,
                   int32_t temporaries);

// Writes to StageLayout::temporaries which pointers of a sweep's launches will point to
// temporaries. `plan` is the plan of the sweep (codegen/families/sweeps.h), and the layouts of its
// launches begin at layouts[first]. Sweeps::temporaries[i] gets the number `temporaries` + i.
void noteTemporaries(const SweepSegment& sweep, const KernelPlan& plan, int32_t temporaries,
                     std::vector<StageLayout>& layouts, size_t first);

}  // namespace heddle::codegen
