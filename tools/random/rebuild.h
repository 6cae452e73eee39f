#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// Changes to a fusion. Each value in `replaced` is replaced by another value, or becomes an input
// with the data that the reference computes.
struct Edits {
  std::vector<ValueId> outputs;                        // empty: the outputs are unchanged
  std::map<ValueId, std::optional<ValueId>> replaced;  // nullopt: becomes an input
};

// Returns the case `from` after `edits`, without values that no output needs. Throws UserError if
// an op rejects its new operands.
FusionCase rebuild(const FusionCase& from, const Edits& edits);

// Returns the case `from` with the values `sizes` for its symbols. If an axis of an input becomes
// shorter, the input keeps the first elements along this axis. Throws UserError if an input would
// have to grow.
FusionCase resized(const FusionCase& from, const SizeBindings& sizes);

// Returns the case `from` with the values of its scalars as defaults of the fusion.
FusionCase withScalarDefaults(const FusionCase& from);

}  // namespace heddle::random
