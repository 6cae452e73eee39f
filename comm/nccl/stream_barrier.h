#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle::comm::nccl {

// Streams of several GPUs meet without a kernel: each stores a number where the others look, and
// waits until all others have stored theirs, by the stream memory operations of the driver (CUDA
// driver API, "Stream Memory Operations"). Places are 4 bytes of device memory, of this GPU or of a
// peer that it reaches. One thread at a time.
class StreamBarrier {
 public:
  // False with the reason where the driver has no such operations.
  static bool isAvailable(std::string& why);

  StreamBarrier() = default;
  StreamBarrier(std::span<uint32_t* const> theirs, std::span<uint32_t* const> mine);

  // What `stream` has done before is there for who then sees `value` at one of `theirs`; what comes
  // later happens when each of `mine` has at least `value`. Numbers are cyclic: up to 2^31 more
  // counts as more.
  void meet(cudaStream_t stream, uint32_t value);
  // Stores alone.
  void arrive(cudaStream_t stream, uint32_t value);

 private:
  void issue(cudaStream_t stream, size_t count);

  std::vector<CUstreamBatchMemOpParams> ops_;  // the stores first
  size_t stores_ = 0;
};

}  // namespace heddle::comm::nccl
