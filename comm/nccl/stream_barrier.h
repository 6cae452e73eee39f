#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle::comm::nccl {

// A barrier of streams on several GPUs that needs no kernel. Each stream writes a number to one
// flag on every other rank. It then waits until all other ranks have written that number to its own
// flags. It uses the stream memory operations of the driver (CUDA driver API, "Stream Memory
// Operations"). Flags are 4 bytes of device memory, of this GPU or of another GPU that it can
// access. One thread at a time may use a barrier.
class StreamBarrier {
 public:
  // Returns false and sets `why` if the driver has no stream memory operations.
  static bool isAvailable(std::string& why);

  StreamBarrier() = default;
  // `theirs`: the flags that this rank writes. `mine`: the flags for which this rank waits.
  StreamBarrier(std::span<uint32_t* const> theirs, std::span<uint32_t* const> mine);

  // Enqueues an arrival, which writes `value` to the flags of the other ranks, and a wait. A rank
  // that sees `value` in its flag also sees the results of all earlier work of `stream`. Later work
  // of `stream` runs only after every flag of `mine` has reached `value`. Numbers wrap around: a
  // flag has reached `value` if it is ahead of `value` by less than 2^31.
  void arriveAndWait(cudaStream_t stream, uint32_t value);
  // Enqueues only the arrival.
  void arrive(cudaStream_t stream, uint32_t value);

 private:
  void issue(cudaStream_t stream, size_t count);

  std::vector<CUstreamBatchMemOpParams> ops_;  // stores come first
  size_t stores_ = 0;
};

}  // namespace heddle::comm::nccl
