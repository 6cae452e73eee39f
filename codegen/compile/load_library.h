#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace heddle::codegen {

// These functions load a shared object from an open file or from bytes in memory. They return a
// handle for dlsym(). The library is unloaded when the last copy of the handle is destroyed. The
// caller may close `file` after the call. They throw UserError with the reason if the library
// cannot be loaded.
std::shared_ptr<void> loadLibrary(int file);
std::shared_ptr<void> loadLibrary(std::span<const std::byte> image);

// Returns the address of a function of a loaded library, or nullptr.
void* findEntry(const std::shared_ptr<void>& library, const std::string& entry);

}  // namespace heddle::codegen
