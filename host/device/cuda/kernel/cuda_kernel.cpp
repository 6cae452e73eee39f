#include "host/device/cuda/kernel/cuda_kernel.h"

#include <cuda.h>

#include <limits>

#include "comm/cuda_call/driver_function.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Launches a kernel with cuLaunchKernelEx(), which takes 0.2 us less than cudaLaunchKernelExC().
// Returns false if the launch failed or the driver does not have this function.
bool launchByDriver(const cudaLaunchConfig_t& config, cudaKernel_t kernel, void** parameters) {
  using Launch = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);
  static const auto launch = comm::driverFunction<Launch>("cuLaunchKernelEx");
  if (launch == nullptr) return false;
  CUlaunchConfig same{};
  same.gridDimX = config.gridDim.x;
  same.gridDimY = config.gridDim.y;
  same.gridDimZ = config.gridDim.z;
  same.blockDimX = config.blockDim.x;
  same.blockDimY = config.blockDim.y;
  same.blockDimZ = config.blockDim.z;
  same.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  same.hStream = config.stream;
  CUlaunchAttribute early{};
  if (config.numAttrs > 0) {
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    same.attrs = &early;
    same.numAttrs = 1;
  }
  // A cudaKernel_t is a CUkernel, which the driver also accepts in place of a CUfunction.
  return launch(&same, reinterpret_cast<CUfunction>(kernel), parameters, nullptr) == CUDA_SUCCESS;
}

}  // namespace

CudaKernel::CudaKernel(const std::vector<std::byte>& cubin, const std::string& entry)
    : entry_(entry) {
  HEDDLE_CUDA(cudaGetDevice, &device_);
  HEDDLE_CUDA(cudaLibraryLoadData, &library_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr,
              0);
  try {
    const cudaError_t status = cudaLibraryGetKernel(&kernel_, library_, entry.c_str());
    HEDDLE_USER_CHECK(status == cudaSuccess, "cudaLibraryGetKernel: {}: the image has no kernel {}",
                      comm::cudaErrorText(status), entry);
    cudaFuncAttributes attributes{};
    HEDDLE_CUDA(cudaFuncGetAttributes, &attributes, reinterpret_cast<const void*>(kernel_));
    shared_allowed_ = attributes.maxDynamicSharedSizeBytes;
  } catch (...) {
    cudaGetLastError();
    cudaLibraryUnload(library_);
    throw;
  }
}

// The destructor makes the kernel's device current before it unloads the kernel. The last owner may
// destroy the kernel on any thread, where another device may be current.
CudaKernel::~CudaKernel() {
  int before = device_;
  cudaGetDevice(&before);
  if (before != device_) cudaSetDevice(device_);
  cudaLibraryUnload(library_);
  if (before != device_) cudaSetDevice(before);
}

// Raises the kernel's limit of dynamic shared memory per block to `bytes`, if it is lower. Some
// kernels need more than CUDA's default limit.
void CudaKernel::allowShared(int32_t bytes) {
  if (bytes <= shared_allowed_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  if (bytes <= shared_allowed_) return;
  const cudaError_t status = cudaKernelSetAttributeForDevice(
      kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes, device_);
  if (status != cudaSuccess) cudaGetLastError();
  HEDDLE_USER_CHECK(
      status == cudaSuccess,
      "cudaKernelSetAttributeForDevice: {}: kernel {} needs {} bytes of shared memory",
      cudaGetErrorString(status), entry_, bytes);
  shared_allowed_.store(bytes, std::memory_order_release);
}

void CudaKernel::launch(const Shape& shape, const void* args, cudaStream_t stream) {
  constexpr int64_t kMostBlocks = std::numeric_limits<int32_t>::max();
  constexpr int32_t kMostBlocksY = 65535;
  HEDDLE_CHECK(shape.grid > 0 && shape.grid <= kMostBlocks && shape.grid_y > 0 &&
                   shape.grid_y <= kMostBlocksY,
               "kernel {}: a grid of {} x {} blocks cannot be launched", entry_, shape.grid,
               shape.grid_y);
  allowShared(shape.shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.grid), static_cast<unsigned>(shape.grid_y), 1);
  config.blockDim = dim3(static_cast<unsigned>(shape.block), 1, 1);
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = stream;
  cudaLaunchAttribute early{};
  if (shape.starts_early) {
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &early;
    config.numAttrs = 1;
  }
  void* parameters[] = {const_cast<void*>(args)};
  if (launchByDriver(config, kernel_, parameters)) return;
  // The runtime repeats the launch. If it fails again, the runtime returns the error for the
  // message.
  const cudaError_t status =
      cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel_), parameters);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  userError(
      "cudaLaunchKernelExC: {}: kernel {}, {} x {} blocks of {} threads, {} bytes of shared "
      "memory",
      comm::cudaErrorText(status), entry_, shape.grid, shape.grid_y, shape.block,
      shape.shared_bytes);
}

CudaKernel::Resources CudaKernel::resources(int32_t block, int32_t shared_bytes) {
  // Without this call, CUDA would report 0 blocks per SM for a kernel that needs more shared memory
  // than the default limit.
  allowShared(shared_bytes);
  const auto* function = reinterpret_cast<const void*>(kernel_);
  cudaFuncAttributes attributes{};
  HEDDLE_CUDA(cudaFuncGetAttributes, &attributes, function);
  int blocks = 0;
  HEDDLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, block,
              static_cast<size_t>(shared_bytes));
  return {attributes.numRegs, static_cast<int64_t>(attributes.localSizeBytes),
          static_cast<int64_t>(attributes.sharedSizeBytes), blocks};
}

}  // namespace heddle::host
