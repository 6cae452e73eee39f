#pragma once

#include <string>

#include "comm/modules.h"
#include "host/device/cuda_module.h"

namespace heddle::host {

// The optional parts, each a shared library loaded on first use and never unloaded: first from the
// folder of libheddle.so, then from $HEDDLE_MODULE_DIR, then by the loader's own search path.
// Thread-safe.

// UserError that names the file and what the loader said of it in each place.
const CudaModule& cudaModule();
const comm::NcclModule& ncclModule();
const comm::MpiModule& mpiModule();

// nullptr, with the same text in `why`.
const CudaModule* findCudaModule(std::string& why);
const comm::NcclModule* findNcclModule(std::string& why);
const comm::MpiModule* findMpiModule(std::string& why);

// Any library with an entry point `symbol`: nullptr with the reason in `why`.
void* findModuleEntry(const char* library, const char* symbol, std::string& why);

}  // namespace heddle::host
