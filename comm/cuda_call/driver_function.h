#pragma once

#include <cuda_runtime_api.h>

namespace heddle::comm {

// Returns a function of the CUDA driver, for example cuCtxGetDevice, or nullptr if the driver does
// not have it. heddle does not link the driver, so it looks the function up at run time. `Function`
// must be the type that the function has in CUDA 12.0.
template <class Function>
Function driverFunction(const char* name) {
  constexpr unsigned kVersion = 12000;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &entry, kVersion, cudaEnableDefault, &state);
  const bool is_there = status == cudaSuccess && state == cudaDriverEntryPointSuccess;
  return is_there ? reinterpret_cast<Function>(entry) : nullptr;
}

}  // namespace heddle::comm
