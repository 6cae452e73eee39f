#pragma once

// kOneIn: with a sanitizer, only one case of kOneIn runs. A sanitizer checks how code runs, and all
// cases of a loop run similar code.
namespace heddle::testing {

#ifdef HEDDLE_SANITIZED
inline constexpr int kOneIn = 4;
#else
inline constexpr int kOneIn = 1;
#endif

}  // namespace heddle::testing
