#include "ir/base/version.h"

namespace heddle {

// cmake/libraries.cmake defines HEDDLE_VERSION for this file only, so that a new version does not
// compile every file again.
std::string version() { return HEDDLE_VERSION; }

}  // namespace heddle
