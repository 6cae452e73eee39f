#pragma once

// With a sanitizer, long loops run only every kOneIn-th case, because a sanitizer makes each case
// slow. Without one, kOneIn is 1.
namespace heddle::testing {

#ifdef HEDDLE_SANITIZED
inline constexpr int kOneIn = 4;
#else
inline constexpr int kOneIn = 1;
#endif

}  // namespace heddle::testing
