#pragma once

#include <cstddef>

namespace heddle {

// The largest number of axes of a tensor. Many passes compare all axes of a tensor with each other.
constexpr size_t kMostAxes = 256;

}  // namespace heddle
