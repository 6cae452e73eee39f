#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle::comm::nccl {

// A barrier of streams on several GPUs, without a kernel. The stream of each rank writes a number
// to one flag of every other rank. The stream then waits until all other ranks have written the
// same number to the flags of its own rank. The class uses stream memory operations (CUDA driver
// API, "Stream Memory Operations"). A flag is 4 bytes of device memory that the GPU of this rank
// can access. One thread at a time may use a barrier.
class StreamBarrier {
 public:
  // Returns whether the driver has stream memory operations. If the result is false, `why` contains
  // the reason.
  static bool isAvailable(std::string& why);

  StreamBarrier() = default;
  // `theirs` are the flags that this rank writes. `mine` are the flags for which this rank waits.
  StreamBarrier(std::span<uint32_t* const> theirs, std::span<uint32_t* const> mine);

  // Enqueues an arrival and a wait on `stream`. The arrival writes `value` to the flags of the
  // other ranks. A rank that sees `value` in its flag also sees the results of all earlier work of
  // `stream`. The wait delays later work of `stream` until every flag of `mine` has reached
  // `value`. Numbers wrap around: a flag has reached `value` if flag - value (mod 2^32) is less
  // than 2^31.
  void arriveAndWait(cudaStream_t stream, uint32_t value);
  // Enqueues only the arrival.
  void arrive(cudaStream_t stream, uint32_t value);

 private:
  void issue(cudaStream_t stream, size_t count);

  std::vector<CUstreamBatchMemOpParams> ops_;  // the stores, followed by the waits
  size_t stores_ = 0;
};

}  // namespace heddle::comm::nccl
