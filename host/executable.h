#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host/context.h"
#include "host/device/device_tensor.h"
#include "host/job/inject_fault.h"
#include "host/outputs.h"
#include "host/program/pass_options.h"
#include "host/program/program.h"

namespace heddle::host {

class RunProfile;  // host/run/run_profile.h

struct RunOptions {
  // The run starts on it and leaves it ordered after the work; nullptr: a stream of the Executable.
  // A caller's stream outlives the run's Outputs and every Tensor taken from them: their memory is
  // given back in its order when the last owner goes. The same holds for the allocator. On
  // cudaStreamPerThread, which is another stream in each thread, memory whose last owner goes on
  // another thread is given back behind the run, but not behind what else the caller has put on the
  // stream of the run.
  Stream stream = nullptr;
  // For temporaries and outputs; nullptr: the device's own, which also serves what a library needs
  // inside one call.
  Allocator* allocator = nullptr;
  // Results land in these tensors (by output position) when their data is not null.
  std::vector<Tensor> preallocated;
  RunProfile* profile = nullptr;  // when each instruction ran; it outlives the run
};

class SharedStream;   // host/run/run_state.h
class Communicators;  // host/job/communicators.h

struct ExecutableOptions {
  PassOptions passes;
  bool verify = true;  // false: a program with races runs as it is (for tests of the checks)
  // Of runs that name no stream, for several Executables that follow each other on it; nullptr: one
  // of its own.
  std::shared_ptr<SharedStream> stream;
  // Of several Executables on one World and one monitor_options job monitor, each of which adds
  // what its program lacks; nullptr: its own.
  std::shared_ptr<Communicators> communicators;
  std::optional<InjectedFault> inject;  // on purpose, on its rank alone
};

// A prepared program. run() may be called from several threads; runs that communicate are
// serialised, also with those of other Executables on the same monitor_options job monitor, and the
// callers see to it that every rank issues them in the same order (else the job ends with an error
// that says so); over NCCL the first run with sizes that are new waits until all ranks have begun
// it, to compare what they post. Executables of one World are to be on one job monitor, as they are
// unless the Context names others: ranks that run two of them in different order would wait for
// each other, and several threads make or run them. Plans are cached by sizes and strides; the
// steady run evaluates no symbol, compiles nothing, makes no event and allocates no heap memory an
// instruction (Check, Print and the reference evaluator do).
class Executable {
 public:
  // The program on every rank must be the same: ranks compare, and a difference is a UserError on
  // all of them with the first line that differs.
  Executable(Program program, const Context& context, const ExecutableOptions& options = {});
  ~Executable();
  Executable(Executable&&) noexcept;

  const Program& program() const;
  // UserError: a missing argument, another dtype, rank or size, a symbol with two values. No tensor
  // is kept: the memory of the inputs stays valid until the work is done, by wait() or in the order
  // of the run's stream (Tensor::in_host_memory: until run() returns).
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});

  struct Stats {
    int64_t programs = 1;  // of a FusionExecutor: that it holds now
    int64_t plans = 0;     // made so far
    int64_t runs = 0;
    int64_t peak_bytes = 0;     // of temporaries and outputs that a run holds at once, by the
                                // allocations and frees in program order; largest over the runs
    int64_t held_bytes = 0;     // not yet given back: outputs still alive
    int64_t communicators = 0;  // that this rank has
    double communicator_seconds = 0;  // that it took to make them, together with the other ranks
  };
  Stats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
