#pragma once

#include <fmt/format.h>

#include <string>

namespace heddle::codegen {

// Returns the name of the object that the op of a node keeps (OpDef::state).
inline std::string stateName(const std::string& prefix, size_t node) {
  return fmt::format("state_{}{}", prefix, node);
}

}  // namespace heddle::codegen
