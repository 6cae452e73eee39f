#include "host/cuda/cuda_library.h"

#include <string>

#include "codegen/runtime_text.h"

namespace heddle::host {

class CudaLibrary::Launcher : public LibraryLauncher {
 public:
  Launcher(CudaLibrary& library, const codegen::KernelCompiler& compiler, cudaStream_t stream)
      : library_(library), compiler_(compiler), stream_(stream) {}
  void launch(LibraryKernel kernel, int64_t blocks, const LibraryArgs& args) override {
    CudaKernel::Shape shape;
    shape.grid = blocks;
    shape.block = kLibraryThreads;
    library_.kernel(kernel, compiler_).launch(shape, &args, stream_);
  }

 private:
  CudaLibrary& library_;
  const codegen::KernelCompiler& compiler_;
  cudaStream_t stream_;
};

void CudaLibrary::run(const LibraryCall& call, const codegen::KernelCompiler& compiler,
                      cudaStream_t stream) {
  Launcher launcher(*this, compiler, stream);
  librarySteps(call, launcher);
}

void CudaLibrary::clear() {
  for (auto& kernel : kernels_) kernel.reset();
}

CudaKernel& CudaLibrary::kernel(LibraryKernel which, const codegen::KernelCompiler& compiler) {
  std::lock_guard lock(mutex_);
  if (image_.empty()) {
    std::string text(codegen::kRuntimeHeader_cuda_elements);
    text += codegen::kRuntimeHeader_cuda_library;
    image_ = compiler.compile({codegen::Target::Cuda, std::move(text)});
  }
  const auto index = static_cast<size_t>(which);
  if (!kernels_[index]) {
    kernels_[index] = std::make_unique<CudaKernel>(image_, kLibraryEntries[index]);
  }
  return *kernels_[index];
}

}  // namespace heddle::host
