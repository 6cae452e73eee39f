#pragma once

// A sanitizer makes a test about ten times slower. With a sanitizer, tests of many similar cases
// therefore run only some of the cases. Without a sanitizer, they run all cases.
namespace heddle::testing {

#ifdef HEDDLE_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Loops over a list of cases run every kOneIn-th case.
inline constexpr int kOneIn = kSanitized ? 16 : 1;

// Returns the number of cases to run: `all`, or `few` with a sanitizer. Choose `few` so that each
// kind of case still runs.
template <class T>
constexpr T casesOf(T all, T few) {
  return kSanitized ? few : all;
}

}  // namespace heddle::testing
