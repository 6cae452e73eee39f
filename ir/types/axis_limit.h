#pragma once

#include <cstddef>

namespace heddle {

// The largest number of axes of a tensor. The limit exists because many passes compare all axes of
// a tensor with each other.
constexpr size_t kMostAxes = 256;

}  // namespace heddle
