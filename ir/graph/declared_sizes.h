#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "ir/graph/fusion.h"

namespace heddle {

// The sizes of a fusion that the user declared as sizes that may be 1: `%x: f32[n?, h]`. The pass
// that decides these sizes (ir/analysis/concretize_sizes.h) stores a pointer to this struct as an
// annotation, because messages show the types that the user wrote.
struct DeclaredSizes {
  std::set<std::string> symbolic;  // the symbols with '?'
  // The inputs that have such symbols in their sizes. Name of the input -> its typeText().
  std::map<std::string, std::string> inputs;
};
using SharedDeclaredSizes = std::shared_ptr<const DeclaredSizes>;  // never nullptr
inline constexpr const char* kDeclaredSizes = "declared_sizes";

SharedDeclaredSizes declaredSizesOf(const Fusion& fusion);

// Returns the name and the type of a value for messages, such as `%x: f32[n?, h]`. If `declared` is
// not nullptr, the text has a '?' after each size in `declared->symbolic`, and the type of an input
// in `declared->inputs` is the one stored there.
std::string typeText(const Value& value, const DeclaredSizes* declared);

}  // namespace heddle
