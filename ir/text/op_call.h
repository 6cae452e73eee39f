#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/composite/table.h"

namespace heddle {

// How the text calls an op: ops of the table and composite ops (ir/composite/composite.h) alike.
struct CallShape {
  std::span<const AttrSpec> attrs;
  bool literal_is_attr = false;  // constant(0.5): the literal is the attribute, not an operand
};

// UserError naming the nearest op when there is none of this name.
CallShape callShape(const std::string& op_name);

// Makes the op, or the ops of the composite, and returns its results, which need not be new values.
std::vector<ValueId> buildCall(FusionBuilder& builder, const std::string& op_name,
                               std::vector<ValueId> operands, Attrs attrs);

}  // namespace heddle
