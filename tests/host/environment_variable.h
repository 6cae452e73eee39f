#pragma once

#include <cstdlib>
#include <string>

namespace heddle::host::testing {

// Sets an environment variable and restores it in the destructor.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    had_ = before != nullptr;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~EnvironmentVariable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

}  // namespace heddle::host::testing
