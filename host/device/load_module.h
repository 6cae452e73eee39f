#pragma once

#include <string>

#include "comm/modules.h"
#include "host/device/cuda_module.h"

namespace heddle::host {

// The functions in this file load the optional modules: the parts of heddle that need CUDA, cuDNN,
// oneDNN, NCCL or MPI. A module is a shared library that is loaded on first use and never unloaded.
// The functions search for it in the folder of libheddle.so, then in $HEDDLE_MODULE_DIR, then on
// the loader's search path. All functions are thread-safe.

// These functions return a module. They throw UserError if the module cannot be loaded. The error
// names the file and says for each path why the file could not be used.
const CudaModule& cudaModule();
const comm::NcclModule& ncclModule();
const comm::MpiModule& mpiModule();

// These functions return a module, or nullptr with the reason in `why`.
const CudaModule* findCudaModule(std::string& why);
const comm::NcclModule* findNcclModule(std::string& why);
const comm::MpiModule* findMpiModule(std::string& why);

// Loads the module `library` and returns its entry point `symbol`, or nullptr with the reason in
// `why`.
void* findModuleEntry(const char* library, const char* symbol, std::string& why);

}  // namespace heddle::host
