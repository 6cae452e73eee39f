#pragma once

#include <string_view>

#include "host/program.h"
#include "host/trace.h"

namespace heddle::host {

// What an instruction asks of its views once sizes are known. UserError, without the instruction.

// A caller's tensor against the slot: dtype, sizes and the observed layout, if the type has one.
void checkInput(const Slot& slot, const TensorDesc& expected, const TensorDesc& got);
void checkLibrary(const CallLibrary& x, const TraceStep& step);
// No output lies on what the kernel reads at computed places: other threads may read it later.
void checkLaunch(const Fusion& segment, const TraceStep& step);
void checkCopy(const TraceStep& step);
void checkCollective(const Communicate& x, const TraceStep& step, int64_t team_size);
void checkReadBack(const Slot& slot, const TraceStep& step);
// One stretch of memory without gaps, in any order of axes.
void checkDense(const View& view, std::string_view what);

}  // namespace heddle::host
