#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace heddle {

// The two kinds of failure. What a message must say: which op, value or instruction, what was got,
// what was expected, and the source line where there is one.

// The caller's fault: malformed text, shapes that disagree, a device that is absent.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Our bug: an invariant of heddle does not hold.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throwing helpers kept out of line so that a check costs one branch where it stands.
[[noreturn]] void throwUserError(std::string message);
[[noreturn]] void throwInternalError(const char* file, int line, const char* condition,
                                     std::string message);

template <class... Args>
[[noreturn]] void userError(fmt::format_string<Args...> format, Args&&... args) {
  throwUserError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace heddle

// The message is formatted only when the condition is false.
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
