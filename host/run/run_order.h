#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "comm/monitor/job_monitor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Keeps the communicating runs of one rank in order. All Executables that use one job monitor share
// one RunOrder.
//
// - A rank prepares and issues only one communicating run at a time. Three things belong to this
//   run: the current run number on the job monitor, the counts of all-to-all-vs on the job monitor,
//   and the exchanges with other ranks through the World.
// - All ranks begin their communicating runs in the same order. The callers must ensure this.
struct RunOrder {
  // Held while a communicating run is planned and issued, and while the ranks create an Executable
  // together.
  std::mutex running;
  // The latest run that has posted. The next run waits for it on the device, so that collectives of
  // two runs on two streams keep their order. The destructor of its Executable resets this pointer.
  // `running` guards this and the members below.
  std::shared_ptr<Completion> latest;
  Stream latest_stream = nullptr;
  int64_t chain = 1;        // id of the current sequence of runs, each of which waits on the
                            // device for the run before it
  int64_t executables = 0;  // created so far
  int64_t alive = 0;        // Executables that exist and use the monitor that the World owns
};

// Returns the RunOrder of a job monitor.
inline std::shared_ptr<RunOrder> runOrderOf(comm::JobMonitor& monitor) {
  return std::static_pointer_cast<RunOrder>(
      monitor.shared([] { return std::make_shared<RunOrder>(); }));
}

// Returns `given`, or the job monitor that the World owns if `given` is nullptr. If this rank
// cannot create that monitor, it notifies the other ranks, because they wait for this rank.
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
