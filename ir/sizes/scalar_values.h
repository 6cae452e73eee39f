#pragma once

#include <string>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// Returns the values of the inputs that the sizes contain, for the end of a message: " (%n = 5)".
// Returns "" if the sizes contain no such value.
std::string scalarValuesIn(const std::vector<Size>& sizes, const SizeBindings& values);

}  // namespace heddle
