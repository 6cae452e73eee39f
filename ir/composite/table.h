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

// A composite op (ir/composite/composite.h) as the text form calls it.
struct CompositeDef {
  static constexpr size_t kAny = std::numeric_limits<size_t>::max();

  std::string_view name;
  std::string_view summary;  // one line, for `heddle ops`
  size_t operands;
  size_t optional;  // so many more may follow; kAny: any number
  std::span<const AttrSpec> attrs;
  // Makes its ops and returns its results. Operand counts and required attributes are checked.
  Operands (*build)(FusionBuilder&, const Operands&, const Attrs&);
};

// Every composite op, family by family.
const std::vector<CompositeDef>& compositeTable();

// nullptr when there is none of this name.
const CompositeDef* findComposite(std::string_view name);

// Checks the operands and attributes, then builds.
Operands buildComposite(FusionBuilder& builder, const CompositeDef& composite,
                        const Operands& operands, const Attrs& attrs);

}  // namespace heddle
