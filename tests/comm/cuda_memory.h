#pragma once

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/comm/conformance/conformance.h"

namespace heddle::comm::conformance {

// The CUDA runtime calls that the tests use. They are looked up in a module that links the CUDA
// runtime, so the tests build and start on every machine.
class CudaRuntime {
 public:
  // Returns null and sets `reason` if there is no module or no device.
  static std::unique_ptr<CudaRuntime> load(const char* module, std::string& reason) {
    void* handle = dlopen(module, RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
      reason = dlerror();
      return nullptr;
    }
    auto runtime = std::unique_ptr<CudaRuntime>(new CudaRuntime);
    const bool found = runtime->find(handle, "cudaGetDeviceCount", runtime->deviceCount) &&
                       runtime->find(handle, "cudaSetDevice", runtime->setDevice) &&
                       runtime->find(handle, "cudaMallocAsync", runtime->allocate) &&
                       runtime->find(handle, "cudaFreeAsync", runtime->release) &&
                       runtime->find(handle, "cudaMallocHost", runtime->allocatePinned) &&
                       runtime->find(handle, "cudaMemcpyAsync", runtime->copyAsync) &&
                       runtime->find(handle, "cudaMemsetAsync", runtime->setAsync) &&
                       runtime->find(handle, "cudaStreamCreateWithFlags", runtime->makeStream) &&
                       runtime->find(handle, "cudaStreamDestroy", runtime->destroyStream) &&
                       runtime->find(handle, "cudaStreamSynchronize", runtime->synchronize);
    if (!found) {
      reason = std::string(module) + " brings no CUDA runtime";
      return nullptr;
    }
    if (runtime->deviceCount(&runtime->devices) != 0 || runtime->devices == 0) {
      reason = "no CUDA device";
      return nullptr;
    }
    return runtime;
  }

  static void check(const char* what, int error) {
    if (error != 0)
      throw std::runtime_error(std::string(what) + ": CUDA error " + std::to_string(error));
  }

  // These are the signatures of the CUDA runtime, with int for its enums and void* for its handles.
  int (*deviceCount)(int*) = nullptr;
  int (*setDevice)(int) = nullptr;
  int (*allocate)(void**, size_t, void* stream) = nullptr;
  int (*release)(void*, void* stream) = nullptr;
  int (*allocatePinned)(void**, size_t) = nullptr;
  int (*copyAsync)(void*, const void*, size_t, int kind, void* stream) = nullptr;
  int (*setAsync)(void*, int value, size_t, void* stream) = nullptr;
  int (*makeStream)(void**, unsigned flags) = nullptr;
  int (*destroyStream)(void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int devices = 0;

  static constexpr int kAnyDirection = 4;  // cudaMemcpyDefault
  static constexpr unsigned kNonBlocking = 1;

 private:
  template <class Function>
  bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }
};

// Pinned host memory for fast copies. Pinning and unpinning may wait for work of any device. If
// this work waits for this rank, neither ends. The memory is therefore reused and never unpinned.
class Staging {
 public:
  explicit Staging(const CudaRuntime& cuda) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      CudaRuntime::check("cudaMallocHost", cuda.allocatePinned(&pinned_, kPinned));
      return;
    }
    pinned_ = free_.back();
    free_.pop_back();
  }
  ~Staging() {
    const std::lock_guard lock(mutex_);
    free_.push_back(pinned_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns at least `bytes` bytes, which are valid until the next call.
  unsigned char* get(size_t bytes) {
    if (bytes <= kPinned) return static_cast<unsigned char*>(pinned_);
    if (large_.size() < bytes) large_.resize(bytes);
    return large_.data();
  }

 private:
  static constexpr size_t kPinned = size_t{16} << 20;
  static inline std::mutex mutex_;
  static inline std::vector<void*> free_;  // blocks for reuse, kept until the process ends
  void* pinned_ = nullptr;
  std::vector<unsigned char> large_;
};

// Device memory and a stream of one rank. The memory comes from the memory pool of the stream.
// cudaMalloc would map memory on all GPUs that can access this GPU, and cudaFree would wait for
// these GPUs. Ranks that are threads of one process could then wait for each other forever.
class DeviceMemory : public Memory {
 public:
  DeviceMemory(const CudaRuntime& cuda, int device)
      : cuda_(on(cuda, device)), given_(cuda), taken_(cuda) {
    CudaRuntime::check("cudaStreamCreate", cuda_.makeStream(&stream_, CudaRuntime::kNonBlocking));
  }
  ~DeviceMemory() override { cuda_.destroyStream(stream_); }

  void* allocate(size_t bytes) override {
    void* data = nullptr;
    CudaRuntime::check("cudaMallocAsync", cuda_.allocate(&data, bytes, stream_));
    return data;
  }
  void release(void* data) override { cuda_.release(data, stream_); }
  void set(void* to, unsigned char byte, size_t bytes) override {
    CudaRuntime::check("cudaMemsetAsync", cuda_.setAsync(to, byte, bytes, stream_));
  }
  void upload(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    CudaRuntime::check("cudaMemcpyAsync",
                       cuda_.copyAsync(to, from, bytes, CudaRuntime::kAnyDirection, stream_));
  }
  const unsigned char* read(const void* from, size_t bytes) override {
    unsigned char* to = taken_.get(bytes);
    upload(to, from, bytes);
    synchronize();
    return to;
  }
  unsigned char* staging(size_t bytes) override { return given_.get(bytes); }
  void* stream() override { return stream_; }
  void synchronize() override {
    CudaRuntime::check("cudaStreamSynchronize", cuda_.synchronize(stream_));
  }

 private:
  static const CudaRuntime& on(const CudaRuntime& cuda, int device) {
    CudaRuntime::check("cudaSetDevice", cuda.setDevice(device));
    return cuda;
  }

  const CudaRuntime& cuda_;
  Staging given_, taken_;
  void* stream_ = nullptr;
};

}  // namespace heddle::comm::conformance
