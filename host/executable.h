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

// Options of one run.
struct RunOptions {
  // The run starts on this stream and leaves it ordered after the work. nullptr: a stream of the
  // Executable. A stream of the caller must outlive the run's Outputs and every Tensor taken from
  // them, because the last owner of their memory frees it in the order of this stream.
  // cudaStreamPerThread is a different stream in each thread. If the last owner is on another
  // thread, the memory is freed after the run, but not after other work that the caller has
  // enqueued on the stream of the run.
  Stream stream = nullptr;
  // Provides the memory of temporaries and outputs, and must outlive the outputs. nullptr: the
  // allocator of the device. Libraries take what they need inside one call from the device in
  // either case.
  Allocator* allocator = nullptr;
  // Tensors that receive the results, by position of the output. An entry without data is ignored.
  // The program writes directly into a tensor that has the layout of its output, and the run copies
  // to the others at its end. UserError: a tensor that is written directly overlaps an input or
  // another such tensor.
  std::vector<Tensor> preallocated;
  // Records when each instruction ran. nullptr: no record. It must outlive the run.
  RunProfile* profile = nullptr;
};

class SharedStream;   // host/run/run_state.h
class Communicators;  // host/job/communicators.h

struct ExecutableOptions {
  PassOptions passes;  // without effect: compile() runs the passes
  // false skips verification and race checks, for tests that run a program with races.
  bool verify = true;
  // The stream of runs that name none. Executables that run one after another may share it.
  // nullptr: a stream of its own.
  std::shared_ptr<SharedStream> stream;
  // Communicators that several Executables of one World and one job monitor share. Each adds those
  // that its program needs and that are missing. nullptr: communicators of its own.
  std::shared_ptr<Communicators> communicators;
  // A fault for tests. It acts only on the rank that it names.
  std::optional<InjectedFault> inject;
};

// A host program that is prepared for runs on one rank.
//
// Threads:  run() may be called from several threads. Runs that communicate are issued one at a
//           time for all Executables of a job monitor.
// Order:    callers must issue communicating runs in the same order on every rank. Otherwise the
//           job ends with an error that says so. All Executables of a World must use one job
//           monitor, which they do unless the Context names others. With two monitors, several
//           threads or another order on one rank could make the ranks wait for each other.
// Caching:  plans are cached by sizes and strides. A repeated run evaluates no symbol, compiles
//           nothing, creates no event and allocates no heap memory per instruction. (The
//           instructions Check and Print and the reference evaluator do.)
// NCCL:     the first run with new sizes waits until every rank has begun it. The ranks then
//           compare what they will post.
class Executable {
 public:
  // Prepares the program; all ranks of a job must do so together. The ranks compare their programs.
  // If these differ, every rank throws UserError with the first line that differs.
  Executable(Program program, const Context& context, const ExecutableOptions& options = {});
  ~Executable();
  Executable(Executable&&) noexcept;

  // Returns the program; its meshes have their sizes in this job.
  const Program& program() const;

  // Starts a run and returns before the device has finished.
  // Memory: the run keeps no reference to the inputs. Their memory must stay valid until
  //         Outputs::wait() returns, or until the run's stream has passed the run. A tensor with
  //         `in_host_memory` must stay valid until run() returns.
  // Errors: UserError for a missing argument, a wrong dtype, rank or size, a symbol with two
  //         values, a preallocated tensor that does not fit, or exhausted memory. If an earlier run
  //         has failed and no caller was told, run() throws that error.
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});

  struct Stats {
    int64_t programs = 1;  // of a FusionExecutor: programs that it holds now
    int64_t plans = 0;     // created so far
    int64_t runs = 0;
    // Largest amount of memory that a run held at once for temporaries and outputs, by the
    // allocations and frees in program order.
    int64_t peak_bytes = 0;
    int64_t held_bytes = 0;           // allocated and not yet freed: outputs that are still alive
    int64_t communicators = 0;        // of this rank
    double communicator_seconds = 0;  // time in which the ranks created their communicators
  };
  Stats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
