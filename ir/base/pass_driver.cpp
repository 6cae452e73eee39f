#include "ir/base/pass_driver.h"

#include <algorithm>
#include <cstdlib>

#include "ir/base/check.h"

namespace heddle {

bool verifyEachByDefault() {
  static const bool verifies = [] {
    const char* value = std::getenv("HEDDLE_VERIFY_EACH");
    const std::string_view text = value == nullptr ? "" : value;
    return !text.empty() && text != "0";
  }();
  return verifies;
}

void checkSkippedPasses(const std::vector<std::string>& skip,
                        const std::vector<std::string_view>& names) {
  for (const std::string& name : skip) {
    HEDDLE_USER_CHECK(std::find(names.begin(), names.end(), name) != names.end(),
                      "there is no pass '{}'; the passes are {}", name, fmt::join(names, ", "));
  }
}

void passIsWrong(std::string_view pass, const std::exception& error) {
  throw InternalError(fmt::format("the pass {} broke the program: {}", pass, error.what()));
}

}  // namespace heddle
