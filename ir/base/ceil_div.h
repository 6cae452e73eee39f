#pragma once

#include <cstdint>

namespace heddle {

// Returns a / b, rounded up. Requires a >= 0 and b > 0.
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace heddle
