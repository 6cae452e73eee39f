#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// Entry points of the optional transports. Each is a shared library that host/device/load_module.h
// loads on first use. The core finds it by the C symbol below and links none of them.

// libheddle_mpi: `extern "C" const MpiModule* heddleMpiModule()`.
struct MpiModule {
  // Returns the World of the job that mpirun started. Initialises MPI unless the program has done
  // so. One thread that the module owns makes all MPI calls and polls. MPI is finalised when its
  // last World is destroyed, unless the program initialised MPI.
  std::unique_ptr<World> (*makeWorld)();
};

// A reduction on device memory: dst = srcs[0] op srcs[1] op ... on `stream`. The caller supplies
// it, because comm does not generate code. dst may equal one of srcs, because an in-place allreduce
// reduces its part into its own buffer.
using DeviceReduce = std::function<void(void* dst, std::span<const void* const> srcs, int64_t count,
                                        DType dtype, ReduceOp op, void* stream)>;

// libheddle_nccl: `extern "C" const NcclModule* heddleNcclModule()`.
struct NcclModule {
  // Wraps a bootstrap World (MPI or in-process), which serves exchange(). Communicators use NCCL on
  // CUDA device `device`. Those of a copy channel (Carrier) use copy engines if the GPUs of the
  // team can access each other's memory. `reduce` sums the data that copy engines moved to that
  // device; nullptr: no copy channels.
  std::unique_ptr<World> (*makeWorld)(std::unique_ptr<World> bootstrap, int device,
                                      DeviceReduce reduce);
};

// Creates several in-process ranks on one GPU (in libheddle_cuda). They use device copies, events
// and this kernel.
using MakeInProcessCudaWorlds = std::vector<std::unique_ptr<World>> (*)(int size, int device,
                                                                        DeviceReduce reduce);

}  // namespace heddle::comm
