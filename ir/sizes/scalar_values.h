#pragma once

#include <string>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// A size may contain the value of an integer input, written `%n`. Returns these values as the end
// of a message: " (%n = 5)". Returns "" if the sizes contain no such value.
std::string scalarValuesIn(const std::vector<Size>& sizes, const SizeBindings& values);

}  // namespace heddle
