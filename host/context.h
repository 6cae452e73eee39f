#pragma once

#include "codegen/compile/image_cache.h"
#include "comm/communicator.h"
#include "comm/monitor/options.h"
#include "host/device/device.h"

namespace heddle::comm {
class JobMonitor;  // comm/monitor/job_monitor.h
}

namespace heddle::host {

// What a rank runs on. Borrowed: device, world, cache and job monitor outlive every Executable made
// with it.
//
// In a job of several ranks all are told when one of them fails, is killed or stopped, or leaves in
// the middle of a run: within the deadline of the job monitor, what the others wait for throws
// UserError, with a line for each rank that says at which instruction it was. Nothing here ends the
// process. The World cannot be used afterwards, that of MPI for nothing but to end the process.
struct Context {
  Device* device = nullptr;
  comm::World* world = nullptr;                  // nullptr: a job of one rank
  codegen::ImageCache* images = nullptr;         // nullptr: a private cache in the default folder
  comm::JobMonitor* monitor = nullptr;           // nullptr: the one that the World keeps
  comm::JobMonitorOptions monitor_options = {};  // of that one, by who needs it first: the deadline
};

}  // namespace heddle::host
