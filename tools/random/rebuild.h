#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tools/random/random_fusion.h"

namespace heddle::random {

// What becomes of a fusion: the values computed by `replace`d expressions come from another value,
// or become inputs that hold what the reference gives them.
struct Edits {
  std::vector<ValueId> outputs;                        // empty: as they are
  std::map<ValueId, std::optional<ValueId>> replaced;  // nullopt: an input of its own
};

// The same case after edits, without what no output needs. UserError when an op refuses its new
// operands.
FusionCase rebuild(const FusionCase& from, const Edits& edits);

// The same case at other sizes of its symbols, inputs cut to their new extents. UserError when one
// would have to grow.
FusionCase resized(const FusionCase& from, const SizeBindings& sizes);

// The scalars of the case as defaults of its fusion.
FusionCase withScalarDefaults(const FusionCase& from);

}  // namespace heddle::random
