#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"

namespace heddle::tools {

// Compiles kernels on a separate thread, while the caller measures other kernels. The thread stores
// the images (the compiled kernels) in an image cache, from which the caller gets them. If the
// caller requests an image that the thread is compiling, the cache makes the caller wait.
class CompileAhead {
 public:
  // The thread compiles the sources of one kernel together, one kernel after another. It ignores
  // errors, because the caller compiles the sources again and reports the errors. The sources, the
  // cache and the compiler must outlive the object.
  using Sources = std::vector<const codegen::KernelSource*>;
  CompileAhead(std::vector<Sources> kernels, codegen::ImageCache& images,
               const codegen::KernelCompiler& compiler);
  // Waits for the kernel that is being compiled. The thread does not compile later kernels.
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
