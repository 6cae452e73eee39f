#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "comm/monitor/job_monitor.h"
#include "host/run/run_state.h"

namespace heddle::host {

// One at a time: the runs of a rank whose programs communicate, of all Executables on one
// monitor_options job monitor. The number of a run on the job monitor, the lists of its
// all-to-all-vs there, and the meetings of ranks through the World belong to the run that is being
// prepared or issued, so another must not begin meanwhile. On all ranks they go in one order, which
// the callers see to.
struct RunOrder {
  // Held while such a run is planned and issued, and while ranks meet to make an Executable.
  std::mutex running;
  // While `running` is held: the latest run that has posted, so that collectives of two runs on two
  // streams keep their order on the device too. Its Executable takes it away when it goes.
  std::shared_ptr<Completion> latest;
  Stream latest_stream = nullptr;
  int64_t chain = 1;        // of runs that each wait on the device for the one before
  int64_t executables = 0;  // made so far
  int64_t alive = 0;        // of these, on the job monitor that the World keeps
};

// The one of a job monitor.
inline std::shared_ptr<RunOrder> runOrderOf(comm::JobMonitor& monitor) {
  return std::static_pointer_cast<RunOrder>(
      monitor.shared([] { return std::make_shared<RunOrder>(); }));
}

// `given`, or the job monitor that the World keeps. The other ranks wait for one that cannot make
// it, so they are told.
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
