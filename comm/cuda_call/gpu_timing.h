#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/cuda_call/cuda_call.h"

// Helpers of modules that measure how long calls of a library take on a GPU. This code is
// header-only for the reason that comm/cuda_call/cuda_call.h states.
namespace heddle::comm {

// Returns whether a CUDA graph is being captured from the stream.
inline bool isCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  HEDDLE_CUDA(cudaStreamIsCapturing, stream, &status);
  return status != cudaStreamCaptureStatusNone;
}

// Holds the caller's stream, or a temporary stream if the caller passed the default stream.
class TimingStream {
 public:
  explicit TimingStream(cudaStream_t given) : stream_(given), own_(given == nullptr) {
    if (own_) HEDDLE_CUDA(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking);
  }
  ~TimingStream() {
    if (!own_) return;
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  TimingStream(const TimingStream&) = delete;
  TimingStream& operator=(const TimingStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
  bool own_;
};

// Owns memory from the device's pool, in whole words of 4 bytes. If the allocation fails, the
// constructor does not throw, and failed() returns true. The caller then skips the measurement, and
// runs still work.
class TimerMemory {
 public:
  TimerMemory(int64_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes == 0) return;
    const size_t rounded = 4 * ((static_cast<size_t>(bytes) + 3) / 4);
    if (cudaMallocAsync(&memory_, rounded, stream) == cudaSuccess) return;
    cudaGetLastError();
    memory_ = nullptr;
    failed_ = true;
  }
  ~TimerMemory() {
    if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
  }
  TimerMemory(const TimerMemory&) = delete;
  TimerMemory& operator=(const TimerMemory&) = delete;
  void* get() const { return memory_; }
  bool failed() const { return failed_; }

 private:
  void* memory_ = nullptr;
  cudaStream_t stream_;
  bool failed_ = false;
};

// Measures the time of enqueued work with two events.
class EventPair {
 public:
  EventPair() {
    HEDDLE_CUDA(cudaEventCreate, &begin_);
    const cudaError_t status = cudaEventCreate(&end_);
    if (status != cudaSuccess) cudaEventDestroy(begin_);
    checkCuda(status, "cudaEventCreate");
  }
  ~EventPair() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  // Calls `work`, which must enqueue work on the stream. Waits until the enqueued work is done, and
  // returns the time that it took on the GPU, in milliseconds.
  template <class Work>
  double time(cudaStream_t stream, const Work& work) const {
    HEDDLE_CUDA(cudaEventRecord, begin_, stream);
    work();
    HEDDLE_CUDA(cudaEventRecord, end_, stream);
    HEDDLE_CUDA(cudaEventSynchronize, end_);
    float ms = 0;
    HEDDLE_CUDA(cudaEventElapsedTime, &ms, begin_, end_);
    return ms;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace heddle::comm
