#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "host/device/device.h"

namespace heddle::host {

// Returns whether mpirun or another PMI launcher started this process.
bool startedByMpi();

// Creates a job of `size` ranks in this process. Its communicators work on host memory if `kind` is
// Null or Cpu, and on memory of GPU 0 if `kind` is Cuda.
std::vector<std::unique_ptr<comm::World>> makeInProcessWorldsFor(DeviceKind kind, int size);

// Creates the World of this process's rank.
//
// Job:        the MPI job if startedByMpi() returns true, otherwise a job of one rank. In an MPI
//             job with `kind` Cuda, the communicators are those of NCCL on GPU `device_ordinal`,
//             and NCCL is bootstrapped through MPI.
// Errors:     UserError if a library that the job needs is missing: MPI, CUDA or NCCL, or heddle's
//             module for it (libheddle_mpi.so, for example).
// Exceptions: if an exception ends the work of a rank, let it leave the scope of the World. The
//             destructor of the World then notifies the other ranks, and their run() or wait()
//             throws. To give the reason to the other ranks, also catch the exception inside of the
//             scope, call World::fail() and throw the exception again (examples/mpi_job.cpp).
// Failures:   after a failure, MPI can only be used to end the process.
//             - If heddle initialised MPI, the process ends without MPI_Finalize.
//             - A program that initialised MPI itself should wait for one second and then call
//               MPI_Abort. During this second, the other ranks can report
//               their errors.
//             - In a failed job, MPI_Finalize calls MPI_Abort with code 2. Otherwise MPI_Finalize
//               could wait forever for ranks that never call it.
//             - The process cannot create a further World.
std::unique_ptr<comm::World> makeJobWorld(DeviceKind kind, int device_ordinal);

// Returns a World with the ranks of `world`. Its communicators use NCCL or copy engines, on this
// rank's GPU `device_ordinal`.
std::unique_ptr<comm::World> makeNcclWorld(std::unique_ptr<comm::World> world, int device_ordinal);

}  // namespace heddle::host
