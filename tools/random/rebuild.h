#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// Changes to a fusion. The values computed by `replaced` expressions come from another value, or
// become inputs that hold the values of the reference.
struct Edits {
  std::vector<ValueId> outputs;                        // empty: unchanged
  std::map<ValueId, std::optional<ValueId>> replaced;  // nullopt: becomes an input
};

// Returns the case after `edits`, without values that no output needs. Throws UserError if an op
// rejects its new operands.
FusionCase rebuild(const FusionCase& from, const Edits& edits);

// Returns the case with other sizes of its symbols; inputs keep their first elements. Throws
// UserError if an input would have to grow.
FusionCase resized(const FusionCase& from, const SizeBindings& sizes);

// Returns the case with its scalars as defaults of the fusion.
FusionCase withScalarDefaults(const FusionCase& from);

}  // namespace heddle::random
