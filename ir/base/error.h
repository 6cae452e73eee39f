#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace heddle {

// The kind of an error, for callers that react to it. The message says what happened.
enum class ErrorCode : uint8_t {
  InvalidArgument,  // a wrong argument, option, file or environment; also if no other code fits
  Parse,            // the text of a fusion or of a host program is malformed
  Type,             // a wrong dtype, or a scalar in place of a tensor, or the reverse
  ShapeMismatch,    // the number of axes, a size or strides are not the expected ones
  Unsupported,      // a device, a library or this build cannot do what was requested
  OutOfMemory,      // memory of a device or of the host is exhausted
  DeviceLost,       // the device fails every later call of this process
  RankLost,         // another rank of the job has failed, does not respond, or has ended
  Deadlock,         // the ranks wait for each other
  CompileFailure,   // a compiler failed on a kernel, or the compiled kernel could not be loaded
  Internal,         // a bug in heddle
};

// Returns the name of a code, such as "out of memory".
const char* nameOf(ErrorCode code);

// The base class of the error classes of heddle. The message says what happened: usually what was
// found and what was expected. It also names the op, the value or the instruction, and the source
// line, as far as they are known.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, ErrorCode code) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// A fault of the caller or of the machine: malformed text, shapes that disagree, a missing device,
// exhausted memory, a lost rank.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message, ErrorCode code = ErrorCode::InvalidArgument)
      : Error(message, code) {}
};

// A bug in heddle: an invariant does not hold.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(message, ErrorCode::Internal) {}
};

}  // namespace heddle
