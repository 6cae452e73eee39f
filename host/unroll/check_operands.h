#pragma once

#include <optional>
#include <string_view>

#include "host/program/program.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Checks of the views of an instruction, once sizes are known. Their UserError does not name the
// instruction; the caller adds it.

// Checks a tensor of the caller against the input slot: dtype, sizes, and the observed layout if
// the type has one.
void checkInput(const Slot& slot, const TensorDesc& expected, const TensorDesc& got);
// Checks the sizes of a library call, and which memory its results may overlap.
void checkLibrary(const CallLibrary& x, const UnrolledStep& step);
// Checks that no output overlaps an input that the kernel reads at computed indices, because other
// threads may read it after the write.
void checkLaunch(const Fusion& segment, const UnrolledStep& step);
// Checks that both sides have the same dtype and sizes.
void checkCopy(const UnrolledStep& step);
// Facts about the team of this rank, for checkCollective().
struct TeamPlace {
  int64_t rank;
  int64_t size;
  int64_t parts;  // number of parts of the larger side: one per rank, except the root if
                  // UnrolledStep::root_apart
  // Per pair: if this rank has a view on one side only, the allocated elements of the other side on
  // the ranks that have it. nullopt: both sides have views, or the type does not determine this
  // number.
  std::vector<std::optional<int64_t>> elsewhere;
};
// Checks dtypes, allocated elements and memory orders of both sides, and that the sides are
// disjoint or overlap in a way that the transports allow (comm/communicator.h). A side on which
// this rank has no part has an empty view.
void checkCollective(const Communicate& x, const UnrolledStep& step, const TeamPlace& place);
// Checks that the tensor has this many elements, and no gaps if there are several.
void checkReadBack(const Slot& slot, const UnrolledStep& step, int64_t elements);
// Checks that the view is one range of memory without gaps, in any order of axes.
void checkDense(const View& view, std::string_view what);

}  // namespace heddle::host
