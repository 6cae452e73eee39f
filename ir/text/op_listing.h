#pragma once

#include <string>

namespace heddle {

// Functions that list the ops which a fusion may call: the op table (ir/ops/op.h) and the composite
// ops (ir/composite/table.h).

// Returns one line per op with its name, kind, operands, attributes and types. The line of a
// composite op has the number of operands instead of their names, and a summary instead of types.
// An operand such as `[b]`, or an attribute such as `[axis=int]`, is optional.
std::string listOps();

// Returns the contents of docs/ops.md: rules for all ops, and then one table per kind of op. The
// last column of a table has notes: what the name of an op does not say, and how the op differs
// from PyTorch's op.
std::string opsMarkdown();

}  // namespace heddle
