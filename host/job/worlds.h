#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "host/device/device.h"

namespace heddle::host {

// Returns true in a process that mpirun (or another PMI launcher) started.
bool startedByMpi();

// Creates a job of `size` ranks in this process. The communicators use the memory of devices of
// `kind`: host memory for Null and Cpu, memory of GPU 0 for Cuda.
std::vector<std::unique_ptr<comm::World>> makeInProcessWorldsFor(DeviceKind kind, int size);

// Creates the World of this process's rank.
//
// Job:        the job of MPI if mpirun started the process, otherwise a job of one rank. In an MPI
//             job with Cuda, NCCL provides the communicators on GPU `device_ordinal`, and MPI
//             bootstraps NCCL.
// Errors:     UserError when a module that the job needs is missing.
// Exceptions: a program that leaves the job because of an exception must catch it outside the scope
//             of the World. The destructor of the World then notifies the other ranks, and their
//             run() or wait() throws. World::fail() tells them the reason.
// After that: after a failure, MPI can only be used to end the process.
//             - If heddle initialised MPI, the process ends without MPI_Finalize.
//             - A program that initialised MPI itself calls MPI_Abort, after it has waited for one
//               second so that the other ranks can report their errors (examples/mpi_job.cpp).
//               In a failed job, MPI_Finalize calls MPI_Abort with code 2. Otherwise it could wait
//               forever for ranks that never call it.
//             - The process cannot create another World.
std::unique_ptr<comm::World> makeJobWorld(DeviceKind kind, int device_ordinal);

// Wraps `world` with communicators of NCCL or of copy engines on this rank's GPU `device_ordinal`.
std::unique_ptr<comm::World> makeNcclWorld(std::unique_ptr<comm::World> world, int device_ordinal);

}  // namespace heddle::host
