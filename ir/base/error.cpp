#include "ir/base/error.h"

#include <utility>

#include "ir/base/check.h"

namespace heddle {

const char* nameOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid argument";
    case ErrorCode::Parse:
      return "parse error";
    case ErrorCode::Type:
      return "wrong type";
    case ErrorCode::ShapeMismatch:
      return "shape mismatch";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::OutOfMemory:
      return "out of memory";
    case ErrorCode::DeviceLost:
      return "device lost";
    case ErrorCode::RankLost:
      return "rank lost";
    case ErrorCode::Deadlock:
      return "deadlock";
    case ErrorCode::CompileFailure:
      return "compile failure";
    case ErrorCode::Internal:
      return "internal error";
  }
  return "unknown error";
}

void throwUserError(const std::string& message, ErrorCode code) { throw UserError(message, code); }

void throwInternalError(const char* file, int line, const char* condition, std::string message) {
  throw InternalError(fmt::format("internal error at {}:{}: {} (check: {})", file, line,
                                  std::move(message), condition));
}

}  // namespace heddle
