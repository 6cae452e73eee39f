#include "ir/base/error.h"

#include <utility>

namespace heddle {

void throwUserError(std::string message) { throw UserError(std::move(message)); }

void throwInternalError(const char* file, int line, const char* condition, std::string message) {
  throw InternalError(fmt::format("internal error at {}:{}: {} (check: {})", file, line,
                                  std::move(message), condition));
}

}  // namespace heddle
