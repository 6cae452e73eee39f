#pragma once

#include <dlfcn.h>

#include <string>

namespace heddle::comm::conformance {

// Returns a C symbol of a module, or null and sets `reason`. The loader also searches the folder of
// the test executable's libraries. Never unloads the module.
template <class Function>
Function moduleSymbol(const char* library, const char* symbol, std::string& reason) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  void* found = handle == nullptr ? nullptr : dlsym(handle, symbol);
  if (found == nullptr) {
    const char* error = dlerror();
    reason = error != nullptr ? error : std::string(library) + " has no " + symbol;
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace heddle::comm::conformance
