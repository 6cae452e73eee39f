#pragma once

#include <string>

namespace heddle {

// Lists of the ops that a fusion may call: the op table and the composite ops.

// Returns one line per op: name, kind, operands, attributes, and types (for composites: what they
// compute). Words in brackets are optional.
std::string listOps();

// Returns docs/ops.md: one table per kind of op. Its notes say what the name of an op does not say,
// and how the op differs from PyTorch's.
std::string opsMarkdown();

}  // namespace heddle
