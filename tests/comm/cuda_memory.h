#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "tests/comm/conformance.h"

namespace heddle::comm::conformance {

// The few runtime calls that the tests make, found through a module that links the CUDA runtime, so
// that the tests themselves build and start anywhere.
class CudaRuntime {
 public:
  // Null with `reason` when there is no module or no device.
  static std::unique_ptr<CudaRuntime> load(const char* module, std::string& reason) {
    void* handle = dlopen(module, RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
      reason = dlerror();
      return nullptr;
    }
    auto runtime = std::unique_ptr<CudaRuntime>(new CudaRuntime);
    const bool found = runtime->find(handle, "cudaGetDeviceCount", runtime->deviceCount) &&
                       runtime->find(handle, "cudaSetDevice", runtime->setDevice) &&
                       runtime->find(handle, "cudaMalloc", runtime->allocate) &&
                       runtime->find(handle, "cudaFree", runtime->release) &&
                       runtime->find(handle, "cudaMallocHost", runtime->allocatePinned) &&
                       runtime->find(handle, "cudaFreeHost", runtime->releasePinned) &&
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

  // The signatures of the CUDA runtime with its enums as int and its handles as void*.
  int (*deviceCount)(int*) = nullptr;
  int (*setDevice)(int) = nullptr;
  int (*allocate)(void**, size_t) = nullptr;
  int (*release)(void*) = nullptr;
  int (*allocatePinned)(void**, size_t) = nullptr;
  int (*releasePinned)(void*) = nullptr;
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

// Host memory that copies to and from a device without a stop on the way, kept from use to use.
class PinnedMemory {
 public:
  explicit PinnedMemory(const CudaRuntime& cuda) : cuda_(cuda) {}
  ~PinnedMemory() { cuda_.releasePinned(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // At least so many bytes, until the next call.
  unsigned char* grow(size_t bytes) {
    if (bytes > bytes_) {
      CudaRuntime::check("cudaFreeHost", cuda_.releasePinned(data_));
      data_ = nullptr;
      CudaRuntime::check("cudaMallocHost", cuda_.allocatePinned(&data_, bytes));
      bytes_ = bytes;
    }
    return static_cast<unsigned char*>(data_);
  }

 private:
  const CudaRuntime& cuda_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Device memory and a stream of one rank.
class DeviceMemory : public Memory {
 public:
  DeviceMemory(const CudaRuntime& cuda, int device) : cuda_(cuda), given_(cuda), taken_(cuda) {
    CudaRuntime::check("cudaSetDevice", cuda_.setDevice(device));
    CudaRuntime::check("cudaStreamCreate", cuda_.makeStream(&stream_, CudaRuntime::kNonBlocking));
  }
  ~DeviceMemory() override { cuda_.destroyStream(stream_); }

  void* allocate(size_t bytes) override {
    void* data = nullptr;
    CudaRuntime::check("cudaMalloc", cuda_.allocate(&data, bytes));
    return data;
  }
  void release(void* data) override { cuda_.release(data); }
  void set(void* to, unsigned char byte, size_t bytes) override {
    CudaRuntime::check("cudaMemsetAsync", cuda_.setAsync(to, byte, bytes, stream_));
  }
  void upload(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    CudaRuntime::check("cudaMemcpyAsync",
                       cuda_.copyAsync(to, from, bytes, CudaRuntime::kAnyDirection, stream_));
  }
  const unsigned char* read(const void* from, size_t bytes) override {
    unsigned char* to = taken_.grow(bytes);
    upload(to, from, bytes);
    synchronize();
    return to;
  }
  unsigned char* staging(size_t bytes) override { return given_.grow(bytes); }
  void* stream() override { return stream_; }
  void synchronize() override {
    CudaRuntime::check("cudaStreamSynchronize", cuda_.synchronize(stream_));
  }

 private:
  const CudaRuntime& cuda_;
  PinnedMemory given_, taken_;
  void* stream_ = nullptr;
};

}  // namespace heddle::comm::conformance
