#pragma once

#include <string>
#include <string_view>

namespace heddle::codegen {

// Returns the SHA-256 hash of `bytes` as 64 hexadecimal digits. It is the same in every process.
std::string sha256(std::string_view bytes);

}  // namespace heddle::codegen
