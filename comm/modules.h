#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// Entry points of the optional transports. Each lives in a shared library that
// host/device/load_module.h loads on first use and finds by the C symbol named here, so the core
// links none of them.

// libheddle_mpi: `extern "C" const MpiModule* heddleMpiModule()`.
struct MpiModule {
  // The job that mpirun started; initialises MPI unless the program has. One thread owned by the
  // module makes every MPI call and polls. Finalised when the last World of it is gone, unless the
  // program had initialised MPI itself.
  std::unique_ptr<World> (*makeWorld)();
};

// A reduction on device memory, which the caller supplies because comm generates no code: dst =
// srcs[0] op srcs[1] op ... on `stream`. dst may be one of srcs, whole: an in-place allreduce
// reduces its part into its own buffer.
using DeviceReduce = std::function<void(void* dst, std::span<const void* const> srcs, int64_t count,
                                        DType dtype, ReduceOp op, void* stream)>;

// libheddle_nccl: `extern "C" const NcclModule* heddleNcclModule()`.
struct NcclModule {
  // Wraps a bootstrap world (MPI or in-process): exchange() goes there, communicators are NCCL's on
  // CUDA device `device`, but for those of a copy channel (Carrier) whose team reaches each other's
  // memory. `reduce` sums what copy engines have brought to that device; none: no copy channels.
  std::unique_ptr<World> (*makeWorld)(std::unique_ptr<World> bootstrap, int device,
                                      DeviceReduce reduce);
};

// Several in-process ranks on one GPU (in libheddle_cuda): device copies, events and this kernel.
using MakeInProcessCudaWorlds = std::vector<std::unique_ptr<World>> (*)(int size, int device,
                                                                        DeviceReduce reduce);

}  // namespace heddle::comm
