#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace heddle {

// heddle throws two kinds of errors. A message states the op, value or instruction, what was found,
// what was expected, and the source line if there is one.

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

// Throw an error. These functions are not inline, so that a check costs its caller one branch.
[[noreturn]] void throwUserError(std::string message);
[[noreturn]] void throwInternalError(const char* file, int line, const char* condition,
                                     std::string message);

template <class... Args>
[[noreturn]] void userError(fmt::format_string<Args...> format, Args&&... args) {
  throwUserError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace heddle

// Throw an error if the condition is false: HEDDLE_CHECK an InternalError, HEDDLE_USER_CHECK a
// UserError. The message is formatted only if the condition is false. HEDDLE_CHECK also reports the
// condition, the file and the line.
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
