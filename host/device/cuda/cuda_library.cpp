#include "host/device/cuda/cuda_library.h"

#include <string>
#include <string_view>

#include "codegen/compile/runtime_text.h"

namespace heddle::host {
namespace {

// Returns the source of a part. Part 1 contains the kernels that work on sort keys of 32 bits, part
// 2 those that work on sort keys of 64 bits, and part 0 all others.
std::string libraryText(size_t part) {
  std::string text = "#define HDL_PART " + std::to_string(part) + "\n";
  for (std::string_view header :
       {codegen::kRuntimeHeader_cuda_elements, codegen::kRuntimeHeader_cuda_lines,
        codegen::kRuntimeHeader_cuda_keys, codegen::kRuntimeHeader_cuda_sort,
        codegen::kRuntimeHeader_cuda_select, codegen::kRuntimeHeader_cuda_library}) {
    text += header;
  }
  return text;
}

}  // namespace

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
  // The mutex is locked during compilation, so that two threads do not compile the same part.
  std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(which);
  const std::string_view entry = kLibraryEntries[index];
  if (!kernels_[index]) {
    const size_t part = entry.ends_with("32") ? 1 : entry.ends_with("64") ? 2 : 0;
    std::vector<std::byte>& image = images_[part];
    if (image.empty()) image = compiler.compile({codegen::Target::Cuda, libraryText(part)});
    kernels_[index] = std::make_unique<CudaKernel>(image, kLibraryEntries[index]);
  }
  return *kernels_[index];
}

}  // namespace heddle::host
