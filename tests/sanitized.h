#pragma once

// A sanitizer watches how code runs, and the cases of one loop run alike: under it one in so many
// is taken.
namespace heddle::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kOneIn = 4;
#else
inline constexpr int kOneIn = 1;
#endif

}  // namespace heddle::testing
