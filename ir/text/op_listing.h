#pragma once

#include <string>

namespace heddle {

// Functions that list the ops which a fusion may call: the op table (ir/ops/op.h) and the composite
// ops (ir/composite/table.h).

// Returns one line per op with its name, kind, operands, attributes and types. The line of a
// composite op has a summary instead of types. Operands and attributes in brackets are optional.
std::string listOps();

// Returns the contents of docs/ops.md: one table per kind of op. A note states what the name of an
// op does not say, and how the op differs from PyTorch's op.
std::string opsMarkdown();

}  // namespace heddle
