#pragma once

#include <cstdint>
#include <string>

namespace heddle::codegen {

// Returns a hash of `text`: FNV-1a, with a seed and a final step that mixes the bits. Use it only
// where a collision does no harm or is detected.
inline uint64_t hash64(const std::string& text, uint64_t seed = 0) {
  uint64_t h = 14695981039346656037ull ^ seed;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

}  // namespace heddle::codegen
