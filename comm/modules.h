#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// Entry points of the optional transports. Each transport is a shared library (a module), which
// host/device/load_module.h loads on first use. libheddle.so does not link the modules. The
// comment of each type names a C function that is an entry point of its module.

// libheddle_mpi: `extern "C" const MpiModule* heddleMpiModule()`.
struct MpiModule {
  // Returns the World of the job that mpirun started. Initialises MPI unless the program has done
  // so. One thread of this module makes all MPI calls of heddle. If the module initialised MPI, it
  // finalises MPI when the last World and its communicators are destroyed, unless the job has
  // failed.
  std::unique_ptr<World> (*makeWorld)();
};

// A function that enqueues a reduction of device memory on `stream`: dst = srcs[0] op srcs[1] op
// ... `dst` may equal one of `srcs`: in an in-place allreduce, a rank reduces its part of the
// elements into its own buffer.
using DeviceReduce = std::function<void(void* dst, std::span<const void* const> srcs, int64_t count,
                                        DType dtype, ReduceOp op, void* stream)>;

// libheddle_nccl: `extern "C" const NcclModule* heddleNcclModule()`.
struct NcclModule {
  // Creates a World whose communicators use NCCL on CUDA device `device`. `bootstrap` is an MPI or
  // in-process World, which executes exchange(). The communicator of a copy channel
  // (Carrier::copy_channel) uses copy engines instead of NCCL, if the GPUs of the team can access
  // each other's memory. `reduce` reduces the data that copy engines moved to `device`. If
  // `reduce` is nullptr, copy channels also use NCCL.
  std::unique_ptr<World> (*makeWorld)(std::unique_ptr<World> bootstrap, int device,
                                      DeviceReduce reduce);
};

// libheddle_cuda: `extern "C" MakeInProcessCudaWorlds heddleInProcessCudaWorlds()`. It returns a
// function that creates `size` in-process ranks on one GPU. The ranks exchange data by device
// copies, events and `reduce`. Only tests call this entry point: heddle itself uses CudaModule
// (host/device/cuda_module.h).
using MakeInProcessCudaWorlds = std::vector<std::unique_ptr<World>> (*)(int size, int device,
                                                                        DeviceReduce reduce);

}  // namespace heddle::comm
