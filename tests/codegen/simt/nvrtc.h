#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"

namespace heddle::codegen::testing {

// Returns NVRTC from the CUDA module of this build, or nullptr if there is no such module. NVRTC
// needs no GPU.
inline std::unique_ptr<KernelCompiler> nvrtc(const char* arch) {
  const char* build = std::getenv("HEDDLE_BINARY_DIR");
  const std::string path = std::string(build == nullptr ? "." : build) + "/lib/libheddle_cuda.so";
  void* module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (module == nullptr) return nullptr;
  auto* make =
      reinterpret_cast<KernelCompiler* (*)(const char*)>(dlsym(module, "heddleMakeNvrtcCompiler"));
  EXPECT_NE(make, nullptr) << path << " has no NVRTC";
  return std::unique_ptr<KernelCompiler>(make == nullptr ? nullptr : make(arch));
}

// Returns the cubin of a source. The cubin comes from the cache on disk if an earlier run of the
// tests has compiled the same text with the same compiler.
inline std::vector<std::byte> cubinOf(const KernelSource& source, const KernelCompiler& compiler) {
  static ImageCache cache;
  return cache.get(source, compiler)->bytes;
}

}  // namespace heddle::codegen::testing
