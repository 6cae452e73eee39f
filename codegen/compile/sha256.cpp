#include "codegen/compile/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "ir/base/check.h"

namespace heddle::codegen {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  HEDDLE_USER_CHECK(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1,
      "libcrypto cannot compute a SHA-256 hash");
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace heddle::codegen
