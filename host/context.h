#pragma once

#include "codegen/compile/image_cache.h"
#include "comm/communicator.h"
#include "comm/monitor/options.h"
#include "host/device/device.h"

namespace heddle::comm {
class JobMonitor;  // comm/monitor/job_monitor.h
}

namespace heddle::host {

// The resources on which one rank runs programs.
//
// Lifetimes: the context borrows all of them. Device, world, cache and job monitor must outlive
//            every Executable that was created with them.
// Failures:  when a rank fails, is killed or stopped, or leaves during a run, the job monitor
//            notifies all other ranks. Within its deadline, every call that waits for other ranks
//            throws UserError. The message has a line for each rank with the instruction where the
//            rank was. The World cannot be used any more. heddle does not end the process, except
//            in MPI_Finalize (makeJobWorld() in host/job/worlds.h).
struct Context {
  Device* device = nullptr;
  comm::World* world = nullptr;           // nullptr: a job of one rank
  codegen::ImageCache* images = nullptr;  // nullptr: a private cache in the default folder
  comm::JobMonitor* monitor = nullptr;    // nullptr: the monitor that the World owns
  // Options of the monitor that the World owns, for example its deadline. The first Executable that
  // needs this monitor creates it, so later options have no effect.
  comm::JobMonitorOptions monitor_options = {};
};

}  // namespace heddle::host
