#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "host/program/program.h"

namespace heddle::host {

// An integer scalar input is *late* if it decides only where slices begin, and no size. A run
// computes the addresses of these slices from its value, so runs with different values share a
// plan. For example, the caller runs one program in a loop, and each run reads another row of a
// cache. An integer tensor without axes counts as a scalar here. The host reads its value in every
// run, because the caller passes it in host memory.

// The late inputs of a program: their symbols (ir/base/size.h), and their positions among the
// inputs.
using LateInputs = std::map<std::string, int32_t>;

// Returns the late inputs of a program, which must not contain Call instructions. An input %n that
// occurs in sizes is late if all of these conditions hold:
// - It occurs only in bounds of slices and in guards with <=. Each of these bounds and guards is
//   linear in %n, as in rows - 2*%n, and contains no other late scalar.
// - The number of elements of each slice does not depend on it.
// - No instruction writes one view of a buffer and accesses a second view of this buffer, if one of
//   the two views begins at a position that depends on %n. Otherwise only a run would know whether
//   the views overlap.
// Any instruction may read or write a slice that begins at a position that depends on %n. The slice
// may be of an input or of a computed value.
LateInputs lateInputsOf(const Program& program);

// Returns how much the size grows if the symbol grows by 1. Returns nullopt if the size is not
// linear in the symbol (a sum in which the symbol occurs only as a term or as one factor of a
// term), or if the number overflows. `sizes` contains the values of all other symbols.
std::optional<int64_t> growthOf(const Size& size, const std::string& symbol,
                                const SizeBindings& sizes);

// The values of a late input for which a plan is valid.
struct LateRange {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  // Restricts the range to the values x for which a size is at least 0. The size is `value` if x is
  // `at`, and it grows by `growth` if x grows by 1. Requires value >= 0.
  void restrict(int64_t value, int64_t growth, int64_t at);
};

}  // namespace heddle::host
