#include <cstdint>
#include <limits>
#include <new>

#include "host/device/cuda/cuda_device.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

class CudaOutOfMemory : public std::bad_alloc {
 public:
  explicit CudaOutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace

CudaAllocator::CudaAllocator(int device) : device_(device) {
  DeviceGuard guard(device_);
  int pools = 0;
  HEDDLE_CUDA(cudaDeviceGetAttribute, &pools, cudaDevAttrMemoryPoolsSupported, device_);
  HEDDLE_USER_CHECK(pools != 0, "cuda:{} has no stream-ordered memory pools", device_);
  cudaMemPool_t pool = nullptr;
  HEDDLE_CUDA(cudaDeviceGetDefaultMemPool, &pool, device_);
  // Without this setting, each synchronization would return the free memory of the pool to the
  // system.
  uint64_t keep = std::numeric_limits<uint64_t>::max();
  HEDDLE_CUDA(cudaMemPoolSetAttribute, pool, cudaMemPoolAttrReleaseThreshold, &keep);
}

void* CudaAllocator::allocate(int64_t bytes, Stream stream) {
  DeviceGuard guard(device_);
  void* memory = nullptr;
  const cudaError_t status =
      cudaMallocAsync(&memory, static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    HEDDLE_CUDA(cudaMemGetInfo, &free, &total);
    throw CudaOutOfMemory(
        fmt::format("cudaMallocAsync: {}: {} bytes on cuda:{}, which has {} of {} bytes free",
                    cudaGetErrorString(status), bytes, device_, free, total));
  }
  checkCuda(status, "cudaMallocAsync");
  return memory;
}

void CudaAllocator::deallocate(void* memory, int64_t, Stream stream) noexcept {
  if (memory == nullptr) return;
  // This call fails only if earlier work on the device has failed. The next call that may throw
  // reports the error of this work.
  int before = -1;
  cudaGetDevice(&before);
  if (before != device_) cudaSetDevice(device_);
  cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
  if (before != device_) cudaSetDevice(before);
}

}  // namespace heddle::host
