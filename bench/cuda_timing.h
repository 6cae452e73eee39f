#pragma once

#include <cuda_runtime_api.h>

#include "bench/timing.h"
#include "ir/base/check.h"

namespace heddle::bench {

inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) userError("{}: {}", call, cudaGetErrorString(status));
}

// Times the work that is enqueued on a stream between two events. Host time counts only if the host
// is slower than the GPU.
class GpuTimer {
 public:
  explicit GpuTimer(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~GpuTimer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  template <class Work>
  double ms(const Work& work) {
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    work();
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Returns the median GPU time of a call of `work`, in milliseconds. Each round times `repeats`
// consecutive calls together, and divides the time by `repeats`.
template <class Work>
double medianMs(cudaStream_t stream, int rounds, int repeats, const Work& work) {
  GpuTimer timer(stream);
  return medianOf(rounds, kWarm,
                  [&] {
                    return timer.ms([&] {
                      for (int r = 0; r < repeats; ++r) work();
                    });
                  }) /
         repeats;
}

// Returns the median host time of a call in nanoseconds. `issue` makes `calls` calls, which are
// timed together. The stream is idle before each measurement.
template <class Issue>
double medianIssueNs(cudaStream_t stream, int rounds, int calls, const Issue& issue) {
  const auto idle = [&] { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); };
  const double ns = medianOf(rounds, kWarm, [&] {
    idle();
    return hostNs(issue);
  });
  idle();
  return ns / calls;
}

}  // namespace heddle::bench
