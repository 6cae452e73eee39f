#pragma once

#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/builder.h"

namespace heddle {

using Operands = std::vector<ValueId>;
using Attrs = std::vector<std::pair<std::string, Attr>>;

// Describes how the text form calls a composite op (ir/composite/composite.h).
struct CompositeDef {
  static constexpr size_t kAny = std::numeric_limits<size_t>::max();

  std::string_view name;
  std::string_view summary;  // one line for `heddle ops` and docs/ops.md
  size_t operands;           // the number of required operands
  size_t optional;  // the number of further operands that a call may omit; kAny: any number
  std::span<const AttrSpec> attrs;
  // Appends the ops of the composite to the builder and returns its results. buildComposite() has
  // checked the number of operands and the required attributes.
  Operands (*build)(FusionBuilder&, const Operands&, const Attrs&);
};

const std::vector<CompositeDef>& compositeTable();

// Returns the composite op of this name, or nullptr if there is none.
const CompositeDef* findComposite(std::string_view name);

// Checks the number of operands and the required attributes, then builds the composite. Throws
// UserError if a check fails.
Operands buildComposite(FusionBuilder& builder, const CompositeDef& composite,
                        const Operands& operands, const Attrs& attrs);

}  // namespace heddle
