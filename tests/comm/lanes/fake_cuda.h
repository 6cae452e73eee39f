#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace heddle::comm::fake {

// Runs `work` on a stream of fake_cuda.cpp, as a kernel would.
void launch(cudaStream_t stream, std::function<void()> work);

}  // namespace heddle::comm::fake
