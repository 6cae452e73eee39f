#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "host/executable.h"
#include "host/run/profile/run_profile.h"

namespace heddle::host {
class SharedStream;  // host/run/completion.h
}

namespace heddle::tools {

// Runs y = neg(x) on a large tensor, to measure the copy bandwidth of the device. `heddle bench`
// calls enqueue() before each run of a program. The copy then also replaces the contents of every
// cache that is smaller than the tensor.
class CopyRuns {
 public:
  // The copies run on `stream`. The device and the image cache must outlive the object.
  CopyRuns(host::Device& device, codegen::ImageCache& images,
           std::shared_ptr<host::SharedStream> stream);

  // Enqueues one measured copy. On CUDA, also enqueues unmeasured copies before and after the
  // measured one. While these copies run, the host can enqueue the next run, so the GPU need not
  // wait for the host.
  void enqueue();
  // Waits for the measured copy of the last enqueue(). Returns the number of bytes that the copy
  // reads and writes per second. Call this once after each enqueue().
  double bytesPerSecond();

  int64_t tensorBytes() const { return tensor_bytes_; }

 private:
  void enqueueUnmeasured();

  host::Device& device_;
  int64_t tensor_bytes_;
  host::Executable executable_;
  std::vector<host::Argument> inputs_;
  host::RunProfile profile_;
  std::unique_ptr<host::Outputs> measured_;
};

}  // namespace heddle::tools
