#include "ir/base/version.h"

namespace heddle {

// cmake/libraries.cmake defines HEDDLE_VERSION for this file only. For a new version, only this
// file is therefore compiled again.
std::string version() { return HEDDLE_VERSION; }

}  // namespace heddle
