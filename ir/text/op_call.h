#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/composite/table.h"

namespace heddle {

// Describes how the text form calls an op. The op is either a row of the op table (ir/ops/op.h) or
// a composite op (ir/composite/table.h).
struct CallShape {
  std::span<const AttrSpec> attrs;
  bool literal_is_attr = false;  // constant(0.5): the literal is the attribute, not an operand
};

// Returns the CallShape of the op with this name. Throws UserError if there is none. If the name of
// an op is similar, the message suggests it.
CallShape callShape(const std::string& op_name);

// Returns the "expected" part of an error message, for example "an attribute of sum: axes or
// keepdim".
std::string attrsOf(const std::string& op, const CallShape& shape);

// Appends the op, or the ops of the composite, to the builder and returns the results. A result may
// be a value that existed before the call, because some composites append nothing.
std::vector<ValueId> buildCall(FusionBuilder& builder, const std::string& op_name,
                               std::vector<ValueId> operands, Attrs attrs);

}  // namespace heddle
