#include <cuda.h>

#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "comm/cuda_call/driver_function.h"
#include "host/device/cuda/cuda_device.h"
#include "host/device/cuda/kernel/cuda_check.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

class CudaOutOfMemory : public std::bad_alloc {
 public:
  explicit CudaOutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// Returns the id of a stream. CUDA gives each id to one stream only, even if streams are destroyed.
// Returns 0 for the default streams, because their handles mean different streams on different
// devices or threads. Also returns 0 if CUDA returns an error. Every allocation of a run calls this
// function. The function therefore calls the driver, which takes a quarter of the time of
// cudaStreamGetId().
uint64_t idOf(Stream stream) noexcept {
  constexpr uintptr_t kLastDefault = 2;  // cudaStreamPerThread
  if (reinterpret_cast<uintptr_t>(stream) <= kLastDefault) return 0;
  static const auto ask =
      comm::driverFunction<CUresult (*)(CUstream, unsigned long long*)>("cuStreamGetId");
  unsigned long long id = 0;
  if (ask != nullptr && ask(static_cast<cudaStream_t>(stream), &id) == CUDA_SUCCESS) return id;
  // The driver returns an error if the thread has no current context. The runtime creates a
  // context.
  return cudaStreamGetId(static_cast<cudaStream_t>(stream), &id) == cudaSuccess ? id : 0;
}

}  // namespace

CudaAllocator::CudaAllocator(int device) : device_(device) {
  DeviceGuard guard(device_);
  int pools = 0;
  HEDDLE_CUDA(cudaDeviceGetAttribute, &pools, cudaDevAttrMemoryPoolsSupported, device_);
  HEDDLE_USER_CHECK_CODE(Unsupported, pools != 0, "cuda:{} has no stream-ordered memory pools",
                         device_);
  cudaMemPool_t pool = nullptr;
  HEDDLE_CUDA(cudaDeviceGetDefaultMemPool, &pool, device_);
  // Without this setting, each synchronization would return the free memory of the pool to the
  // system.
  uint64_t keep = std::numeric_limits<uint64_t>::max();
  HEDDLE_CUDA(cudaMemPoolSetAttribute, pool, cudaMemPoolAttrReleaseThreshold, &keep);
}

// The caller has waited for all work of the device, so the destructor need not free the blocks in
// stream order.
CudaAllocator::~CudaAllocator() {
  for (void* memory : kept_.dropAll()) cudaFree(memory);
}

// The function waits for the device, because it cannot free the blocks in stream order. KeptBlocks
// stores only the ids of their streams, not the handles, and some of the streams may be destroyed.
bool CudaAllocator::freeAllKept() {
  const std::vector<void*> blocks = kept_.dropAll();
  if (blocks.empty()) return false;
  HEDDLE_CUDA(cudaDeviceSynchronize);
  for (void* memory : blocks) HEDDLE_CUDA(cudaFree, memory);
  return true;
}

void* CudaAllocator::allocate(int64_t bytes, Stream stream) {
  DeviceGuard guard(device_);
  const uint64_t id = idOf(stream);
  void* const kept = id == 0 ? nullptr : kept_.take(bytes, id);
  if (kept != nullptr) return kept;
  const size_t size = KeptBlocks::rounded(bytes);
  void* memory = nullptr;
  cudaError_t status = cudaMallocAsync(&memory, size, static_cast<cudaStream_t>(stream));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    if (freeAllKept()) {
      status = cudaMallocAsync(&memory, size, static_cast<cudaStream_t>(stream));
    }
  }
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

void CudaAllocator::deallocate(void* memory, int64_t bytes, Stream stream) noexcept {
  if (memory == nullptr) return;
  const uint64_t id = idOf(stream);
  if (id != 0 && kept_.keep(memory, bytes, id)) return;
  // cudaFreeAsync() fails only if earlier work on the device has failed. The next function of the
  // device that may throw reports the error of this work.
  int before = -1;
  cudaGetDevice(&before);
  if (before != device_) cudaSetDevice(device_);
  cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
  if (before != device_) cudaSetDevice(before);
}

void CudaAllocator::freeKept(Stream stream) noexcept {
  const uint64_t id = idOf(stream);
  if (id == 0) return;
  for (void* memory : kept_.drop(id)) cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
}

}  // namespace heddle::host
