#include "host/device/cpu/matmul_library.h"

#include <cstdlib>
#include <string_view>

#include "host/device/load_module.h"
#include "ir/base/check.h"

namespace heddle::host::matmul {
namespace {

CpuMatmulLibrary libraryOfEnvironment() {
  const char* variable = std::getenv("HEDDLE_CPU_MATMUL");
  const std::string_view value = variable == nullptr ? "" : variable;
  if (value.empty()) return CpuMatmulLibrary::Any;
  if (value == "onednn") return CpuMatmulLibrary::OneDnn;
  HEDDLE_USER_CHECK(
      value == "openblas",
      "the environment variable HEDDLE_CPU_MATMUL is '{}'; expected onednn or openblas", value);
  return CpuMatmulLibrary::OpenBlas;
}

}  // namespace

const MatmulLibrary* findOneDnn(std::string& why) {
  void* entry = findModuleEntry("libheddle_onednn.so", "heddleOneDnnModule", why);
  if (entry == nullptr) return nullptr;
  return reinterpret_cast<const MatmulLibrary* (*)()>(entry)();
}

const MatmulLibrary* matmulLibrary(CpuMatmulLibrary wanted) {
  if (wanted == CpuMatmulLibrary::Any) wanted = libraryOfEnvironment();
  if (wanted == CpuMatmulLibrary::OpenBlas) return nullptr;
  std::string why;
  const MatmulLibrary* found = findOneDnn(why);
  if (found == nullptr && wanted == CpuMatmulLibrary::OneDnn) {
    throwUserError("matrix products by oneDNN: " + why, ErrorCode::Unsupported);
  }
  return found;
}

}  // namespace heddle::host::matmul
