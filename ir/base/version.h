#pragma once

#include <string>

namespace heddle {

// Returns the version of the loaded library, such as "0.2.0": major, minor and patch number.
// Versions with the same major and minor number have the same binary interface. The soname
// libheddle.so.0.2 contains these two numbers.
std::string version();

}  // namespace heddle
