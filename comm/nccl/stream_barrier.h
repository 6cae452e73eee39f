#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle::comm::nccl {

// A barrier of streams on several GPUs that needs no kernel. Each stream stores a number into a
// flag of every other rank and waits until all other ranks have stored theirs. It uses the stream
// memory operations of the driver (CUDA driver API, "Stream Memory Operations"). Flags are 4 bytes
// of device memory, of this GPU or of another GPU that it can access. One thread at a time may use
// it.
class StreamBarrier {
 public:
  // Returns false with the reason in `why` if the driver has no such operations.
  static bool isAvailable(std::string& why);

  StreamBarrier() = default;
  StreamBarrier(std::span<uint32_t* const> theirs, std::span<uint32_t* const> mine);

  // Enqueues an arrival and a wait. A rank that sees `value` in its flag also sees the earlier work
  // of `stream`. Later work of `stream` runs after each flag of `mine` has reached `value`. Numbers
  // are cyclic: a flag that is ahead by up to 2^31 counts as reached.
  void arriveAndWait(cudaStream_t stream, uint32_t value);
  // Enqueues only the arrival.
  void arrive(cudaStream_t stream, uint32_t value);

 private:
  void issue(cudaStream_t stream, size_t count);

  std::vector<CUstreamBatchMemOpParams> ops_;  // stores come first
  size_t stores_ = 0;
};

}  // namespace heddle::comm::nccl
