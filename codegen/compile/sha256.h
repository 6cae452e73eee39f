#pragma once

#include <string>
#include <string_view>

namespace heddle::codegen {

// Returns the SHA-256 hash of `bytes` as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace heddle::codegen
