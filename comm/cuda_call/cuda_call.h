#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "ir/base/check.h"

// This code is header-only, because the modules that use it (comm/modules.h) are separate shared
// libraries. libheddle.so, which all of them use, must contain no CUDA calls.
namespace heddle::comm {

// Returns whether every later CUDA call of the process fails after this error (CUDA Runtime API,
// "Data types used by CUDA Runtime", enum cudaError).
inline bool losesGpu(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return true;
    default:
      return false;
  }
}

// Returns CUDA's description and name of an error. If losesGpu() is true, adds advice.
inline std::string cudaErrorText(cudaError_t status) {
  return fmt::format("{} ({}){}", cudaGetErrorString(status), cudaGetErrorName(status),
                     losesGpu(status) ? "; the GPU is lost for this process: every later CUDA call "
                                        "fails, so continue in a new process"
                                      : "");
}

// Returns the ErrorCode of the UserError that reports a CUDA error.
inline ErrorCode codeOf(cudaError_t status) {
  if (losesGpu(status)) return ErrorCode::DeviceLost;
  if (status == cudaErrorMemoryAllocation) return ErrorCode::OutOfMemory;
  const bool lacks = status == cudaErrorNoDevice || status == cudaErrorNotSupported ||
                     status == cudaErrorInsufficientDriver;
  return lacks ? ErrorCode::Unsupported : ErrorCode::InvalidArgument;
}

// Throws UserError if `status` is an error. The message has the name of the call and
// cudaErrorText(). Clears CUDA's last error, so that the next check of a kernel launch does not
// report this error again.
inline void checkCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  userErrorWith(codeOf(status), "{} failed: {}", call, cudaErrorText(status));
}

}  // namespace heddle::comm

// Calls a CUDA function and checks its result, for example HEDDLE_CUDA(cudaEventRecord, event,
// stream).
#define HEDDLE_CUDA(api, ...) ::heddle::comm::checkCuda(api(__VA_ARGS__), #api)
