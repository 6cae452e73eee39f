#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"

namespace heddle::tools {

// Compiles kernels on a thread of its own, while the caller measures other kernels. The images are
// then in `images`. If the caller needs an image that this thread is compiling, the cache lets the
// caller wait for it.
class CompileAhead {
 public:
  // The sources of one kernel are compiled together, one kernel after another. Errors are ignored,
  // because the caller compiles the sources again and reports them. The sources, the cache and the
  // compiler must outlive the object.
  using Sources = std::vector<const codegen::KernelSource*>;
  CompileAhead(std::vector<Sources> kernels, codegen::ImageCache& images,
               const codegen::KernelCompiler& compiler);
  // Waits for the kernel that is being compiled. Later ones are not compiled.
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

 private:
  void compile(codegen::ImageCache& images, const codegen::KernelCompiler& compiler);

  const std::vector<Sources> kernels_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace heddle::tools
