#pragma once

#include <memory>

#include "host/executable.h"

namespace heddle::comm {
class JobMonitor;
}

namespace heddle::host {

class Communicators;
class KernelStore;
class RunResources;
class SharedStream;

// Parts of an Executable that its creator passes to it, and that several Executables may share.
// Only the code of heddle and its commands uses this struct, because users cannot create the parts.
// If a member other than `monitor` is nullptr, the Executable creates its own part.
struct ExecutableParts {
  // The stream of runs whose RunOptions::stream is nullptr (host/run/completion.h). Runs of
  // Executables that share it execute one after another.
  std::shared_ptr<SharedStream> stream = {};
  // Communicators (host/job/communicators.h). Executables that share them must use one World and
  // one job monitor. Each Executable adds the missing communicators that its program needs. In a
  // job of one rank, an Executable ignores this member and creates its own communicators.
  std::shared_ptr<Communicators> communicators = {};
  // Kernels (host/plan/kernel_store.h). Executables that share them must use one device.
  std::shared_ptr<KernelStore> kernels = {};
  // The job monitor, which must outlive the Executable. nullptr: the monitor that the World owns.
  // All Executables of a World must use the same monitor. Runs with different monitors are not
  // ordered, so ranks could wait for each other forever.
  comm::JobMonitor* monitor = nullptr;

  // Creates an Executable with these parts.
  Executable make(Program program, const Context& context,
                  const ExecutableOptions& options = {}) const;
  // Returns the resources of an Executable's runs (host/run/completion.h).
  static std::shared_ptr<RunResources> resourcesOf(const Executable& executable);
};

}  // namespace heddle::host
