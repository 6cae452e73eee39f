#pragma once

#include "codegen/compile/image_cache.h"
#include "comm/communicator.h"
#include "comm/monitor/options.h"
#include "host/device/device.h"

namespace heddle::host {

// The resources on which one rank runs programs.
//
// Lifetimes: the context owns none of its resources. The device, the World and the image cache must
//            outlive every Executable that uses them.
// Failures:  the World owns a job monitor. When a rank fails, is killed or stopped, or leaves
//            during a run, the monitor notifies all other ranks. Every call that waits for other
//            ranks then throws UserError within the monitor's deadline. The message has one line
//            per rank, with the last instruction of the rank. The World is unusable afterwards.
//            heddle does not end the process, but a later MPI_Finalize may abort it (makeJobWorld()
//            in host/job/worlds.h).
struct Context {
  Device* device = nullptr;
  comm::World* world = nullptr;  // nullptr: a job of one rank
  // Caches compiled kernels. nullptr: each Executable creates a cache in the default folder. A
  // FusionExecutor creates one for all its programs.
  codegen::ImageCache* images = nullptr;
  // Options of the job monitor, for example its deadline. The first Executable or FusionExecutor
  // that uses the World creates the monitor with these options. The options of later ones have no
  // effect.
  comm::JobMonitorOptions monitor_options = {};
};

}  // namespace heddle::host
