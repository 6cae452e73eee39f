#include "tools/tune/compile_ahead.h"

#include <exception>
#include <utility>

#include "ir/system/start_thread.h"

namespace heddle::tools {

CompileAhead::CompileAhead(std::vector<Sources> kernels, codegen::ImageCache& images,
                           const codegen::KernelCompiler& compiler)
    : kernels_(std::move(kernels)) {
  if (kernels_.empty()) return;
  thread_ = startThread("the compilation of kernels ahead of their measurement",
                        [this, &images, &compiler] { compile(images, compiler); });
}

CompileAhead::~CompileAhead() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void CompileAhead::compile(codegen::ImageCache& images, const codegen::KernelCompiler& compiler) {
  for (const Sources& sources : kernels_) {
    if (ends_) return;
    try {
      images.get(sources, compiler);
    } catch (const std::exception&) {
      // The caller gets the same error when it compiles the sources.
    }
  }
}

}  // namespace heddle::tools
