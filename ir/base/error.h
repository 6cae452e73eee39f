#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace heddle {

// heddle throws two kinds of errors. A message names the op, the value or the instruction, and
// states what was found and what was expected. It also gives the source line if the line is known.

// A fault of the caller: malformed text, shapes that disagree, a missing device.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A bug in heddle: an invariant does not hold.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throw an error. These functions are not inline, so that a check adds only one branch to the code
// of its caller.
[[noreturn]] void throwUserError(std::string message);
[[noreturn]] void throwInternalError(const char* file, int line, const char* condition,
                                     std::string message);

template <class... Args>
[[noreturn]] void userError(fmt::format_string<Args...> format, Args&&... args) {
  throwUserError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace heddle

// Check a condition and throw an error if it is false. HEDDLE_CHECK throws InternalError and also
// reports the condition, the file and the line. HEDDLE_USER_CHECK throws UserError. The message is
// formatted only if the condition is false.
#define HEDDLE_CHECK(condition, ...)                                                            \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      ::heddle::throwInternalError(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
    }                                                                                           \
  } while (false)

#define HEDDLE_USER_CHECK(condition, ...)                   \
  do {                                                      \
    if (!(condition)) [[unlikely]] {                        \
      ::heddle::throwUserError(::fmt::format(__VA_ARGS__)); \
    }                                                       \
  } while (false)
