#pragma once

#include <string>

namespace heddle {

// The ops that a fusion may call, from the op table and the table of composite ops.

// One op a line: name, kind, operands, attributes, types (of composites: what they compute). A word
// in brackets may be left out.
std::string listOps();

// docs/ops.md: a table a kind, with what an op means beyond its name and where it is not PyTorch's.
std::string opsMarkdown();

}  // namespace heddle
