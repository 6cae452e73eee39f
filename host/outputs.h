#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "host/device/device.h"
#include "host/device/device_tensor.h"

namespace heddle::host {

struct RunResult;  // internal

// An input or an output of a run.
struct AliasedTensor {
  bool is_input;
  size_t index;  // position among the inputs or among the outputs of the program
  bool operator==(const AliasedTensor&) const = default;
};

// The results of a run. run() returns them before the device has finished.
//
// Lifetimes: the Outputs may outlive later runs and the Executable. They must not outlive the
//            Device, nor the allocator and the stream that the caller passed to the run.
class Outputs {
 public:
  // Blocks the host until the run has completed. If the run failed, every call throws the first
  // error of the run. The message names the instruction. If the device does not report which
  // instruction failed (a CUDA fault), the message names the API call instead.
  // If the collectives of the run wait on the device (NCCL), wait() also throws the failure of the
  // job. It does so even if the work of the run completed before this call. The reason: an aborted
  // collective looks like a successful one on the device.
  void wait() const;
  // Delays later work on `stream` until the run has completed, without blocking the host. Call this
  // before another library reads an output on its own stream. Work that follows a failed run reads
  // values that are not valid; only wait() throws the error. The stream must belong to the device
  // of the run. Throws UserError if the device is lost.
  void makeWait(Stream stream) const;
  size_t size() const;
  // Returns output `i`. Its data is valid after wait(), and for later work on the run's stream.
  // Throws UserError if there is no output `i`.
  const Argument& operator[](size_t i) const;
  // tensor() returns an output that is a tensor, and scalar() an output that is a scalar. Both find
  // the output by its position or by its name. The name is that of the returned value of the fusion
  // or of the output of the host program, without '%'. ExecutableOptions::output_names may give
  // other names. Both functions throw UserError if there is no such output, or if it is of the
  // other kind. References are valid as long as this object exists. Copy the Tensor to keep the
  // memory longer.
  const Tensor& tensor(size_t i) const;
  const Tensor& tensor(std::string_view name) const;
  Scalar scalar(size_t i) const;
  Scalar scalar(std::string_view name) const;
  // Returns the name of output `i`.
  const std::string& name(size_t i) const;
  // Returns the tensor with which output `i` shares memory. This is the input of which output `i`
  // is a view or in which the run has stored it, or the first output in the same allocation.
  // Returns nullopt if output `i` is itself the first output in an allocation of the run, is stored
  // in a preallocated tensor, is a scalar, or has no part on this rank. Throws UserError if there
  // is no output `i`.
  std::optional<AliasedTensor> aliased(size_t i) const;
  // Returns what ExecutableOptions::check_numerics has found on this rank, as a text of one or two
  // lines. Returns "" if the check is off, or if no instruction has written NaN or infinity. Call
  // this function after wait().
  std::string numerics() const;

 private:
  friend class Executable;
  explicit Outputs(std::shared_ptr<RunResult> result) : result_(std::move(result)) {}
  size_t positionOf(std::string_view name) const;
  std::shared_ptr<RunResult> result_;
};

}  // namespace heddle::host
