#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace heddle::codegen {

// Load a shared object. The result is a handle for dlsym(); the last copy closes it. The code stays
// usable after the descriptor is closed. Throw UserError with the reason from dlopen.
// The first function loads the open file, whatever its name refers to now. The second one loads a
// copy in memory that only this process can reach.
std::shared_ptr<void> loadLibrary(int file);
std::shared_ptr<void> loadLibrary(std::span<const std::byte> image);

// Returns the address of a function of a loaded library, or nullptr.
void* findEntry(const std::shared_ptr<void>& library, const std::string& entry);

}  // namespace heddle::codegen
