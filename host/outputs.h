#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "host/device/device_tensor.h"

namespace heddle::host {

struct RunResult;  // host/run/run_result.h

// What a run gives back, before the device has finished. Keeps what it needs alive by itself: it
// may outlive later runs and the Executable, not the Device, nor the allocator or the stream that
// the caller gave to the run.
class Outputs {
 public:
  explicit Outputs(std::shared_ptr<RunResult> result) : result_(std::move(result)) {}
  // The host waits for the run; throws its first error, naming the instruction, each time it is
  // called. An error of the device that comes from no one instruction (a CUDA fault) names the
  // call. A run whose collectives wait for peers on the device also throws what the job has failed
  // of, even if it ended before: collectives that were given up end there like good ones.
  void wait() const;
  size_t size() const;
  const Argument& operator[](size_t i) const;  // data is valid after wait(), or on the run's stream

 private:
  std::shared_ptr<RunResult> result_;
};

}  // namespace heddle::host
