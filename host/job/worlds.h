#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "host/device/device.h"

namespace heddle::host {

// True in a process that mpirun (or another PMI launcher) started.
bool startedByMpi();

// `size` ranks in this process, whose communicators take the memory of devices of `kind`: host
// memory for Null and Cpu, memory of GPU 0 for Cuda.
std::vector<std::unique_ptr<comm::World>> makeInProcessWorldsFor(DeviceKind kind, int size);

// This process's rank of the job: MPI's when mpirun started it (for Cuda the communicators are
// NCCL's on GPU `device_ordinal`, bootstrapped by MPI), else a job of one rank. UserError when a
// module that the job needs is missing.
//
// A program that leaves by an exception catches it outside of the World: as that is unwound, the
// others hear of it (World::fail tells them why) and their run() or wait() throws. Then MPI is good
// for nothing but the end: where heddle has started MPI, the process ends without finalising it;
// a program that has started MPI itself calls MPI_Abort, after a second in which the others can say
// why they end (examples/mpi_job.cpp). MPI_Finalize would wait for ranks that wait elsewhere, so in
// a job that has failed it ends in MPI_Abort with code 2, and no other World can be made.
std::unique_ptr<comm::World> makeJobWorld(DeviceKind kind, int device_ordinal);

// `world` with communicators of NCCL, or of copy engines, on GPU `device_ordinal` of this rank.
std::unique_ptr<comm::World> makeNcclWorld(std::unique_ptr<comm::World> world, int device_ordinal);

}  // namespace heddle::host
