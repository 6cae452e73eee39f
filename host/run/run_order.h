#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "comm/monitor/job_monitor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Keeps the communicating runs of one rank in order. A run is communicating if its program
// communicates on at least one rank. All Executables that use the same job monitor
// (comm/monitor/job_monitor.h) share one RunOrder.
//
// - A rank prepares and issues only one communicating run at a time. The reason: the status of the
//   rank on the job monitor has one run number, which also identifies the counts of all-to-all-v
//   calls, and all runs exchange data with other ranks through one World.
// - All ranks must begin their communicating runs in the same order. The callers must ensure this.
struct RunOrder {
  // A thread holds this lock while it prepares and issues a communicating run, and while the ranks
  // create an Executable together. The lock guards all members below.
  std::mutex running;
  // The latest run that has enqueued communication. The stream of the next communicating run waits
  // for this run, so that collectives of two runs on two streams keep their order. A run on another
  // device cannot wait for it, and begins a new `chain`. The Executable of the latest run resets
  // this pointer in its destructor.
  std::shared_ptr<Completion> latest;
  Stream latest_stream = nullptr;  // the stream of the latest run
  // Id of the current sequence of runs. Each run of a sequence waits on the device for the run
  // before it.
  int64_t chain = 1;
  int64_t executables = 0;  // number of Executables created so far
  int64_t alive = 0;        // number of existing Executables that use the job monitor of the World
};

// Returns the RunOrder of a job monitor.
inline std::shared_ptr<RunOrder> runOrderOf(comm::JobMonitor& monitor) {
  return std::static_pointer_cast<RunOrder>(
      monitor.shared([] { return std::make_shared<RunOrder>(); }));
}

// Returns `given`. If `given` is nullptr, returns the job monitor that the World owns, and creates
// it at the first call. If this rank cannot create the monitor, the function notifies the other
// ranks, because they wait for this rank.
inline comm::JobMonitor& jobMonitorOf(comm::World& world, comm::JobMonitor* given,
                                      const comm::JobMonitorOptions& options) {
  if (given != nullptr) return *given;
  try {
    return comm::jobMonitorOf(world, options);
  } catch (const std::exception& e) {
    world.fail(e.what());
    throw;
  }
}

}  // namespace heddle::host
