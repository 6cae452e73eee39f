#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "ir/base/error.h"
#include "ir/base/id.h"

namespace heddle {

// These functions throw an error. They are not inline, which keeps the code of every check small.
[[noreturn]] void throwUserError(const std::string& message,
                                 ErrorCode code = ErrorCode::InvalidArgument);
[[noreturn]] void throwInternalError(const char* file, int line, const char* condition,
                                     std::string message);

template <class... Args>
[[noreturn]] void userError(fmt::format_string<Args...> format, Args&&... args) {
  throwUserError(fmt::format(format, std::forward<Args>(args)...));
}
// Throws a UserError with the given code. userError() gives its error the code InvalidArgument.
template <class... Args>
[[noreturn]] void userErrorWith(ErrorCode code, fmt::format_string<Args...> format,
                                Args&&... args) {
  throwUserError(fmt::format(format, std::forward<Args>(args)...), code);
}

// Returns an error with the text `text` and the code of `error`.
inline UserError withText(const UserError& error, const std::string& text) {
  return UserError(text, error.code());
}

}  // namespace heddle

// Prints an id as a number.
template <class Tag>
struct fmt::formatter<heddle::Id<Tag>> : fmt::formatter<int32_t> {
  auto format(heddle::Id<Tag> id, fmt::format_context& context) const {
    return fmt::formatter<int32_t>::format(id.number(), context);
  }
};

// These macros check a condition and throw an error if it is false. HEDDLE_CHECK throws
// InternalError and also reports the condition, the file and the line. HEDDLE_USER_CHECK throws
// UserError with the code InvalidArgument, and HEDDLE_USER_CHECK_CODE with the given code. The
// message is formatted only if the condition is false.
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

#define HEDDLE_USER_CHECK_CODE(code, condition, ...)                                   \
  do {                                                                                 \
    if (!(condition)) [[unlikely]] {                                                   \
      ::heddle::throwUserError(::fmt::format(__VA_ARGS__), ::heddle::ErrorCode::code); \
    }                                                                                  \
  } while (false)
