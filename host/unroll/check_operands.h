#pragma once

#include <optional>
#include <string_view>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// What an instruction asks of its views once sizes are known. UserError, without the instruction.

// A caller's tensor against the slot: dtype, sizes and the observed layout, if the type has one.
void checkInput(const Slot& slot, const TensorDesc& expected, const TensorDesc& got);
void checkLibrary(const CallLibrary& x, const UnrolledStep& step);
// No output lies on what the kernel reads at computed places: other threads may read it later.
void checkLaunch(const Fusion& segment, const UnrolledStep& step);
void checkCopy(const UnrolledStep& step);
// A rank's place in its team. The views that it has no part in are empty.
struct TeamPlace {
  int64_t rank;
  int64_t size;
  int64_t parts;  // of the larger side, one a rank but where the root is apart
  // Of each pair, elements that the side without a view has elsewhere, where its type tells.
  std::vector<std::optional<int64_t>> elsewhere;
};
// Dtypes, allocated elements and memory order on both sides, and that they lie apart or as the
// transports allow (comm/communicator.h).
void checkCollective(const Communicate& x, const UnrolledStep& step, const TeamPlace& place);
void checkReadBack(const Slot& slot, const UnrolledStep& step, int64_t elements);
// One stretch of memory without gaps, in any order of axes.
void checkDense(const View& view, std::string_view what);

}  // namespace heddle::host
