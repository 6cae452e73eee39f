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
  // The run begins on this stream. Work that the caller enqueues on the stream afterwards executes
  // after the run. nullptr: the run uses ExecutableOptions::stream. A stream of the caller must
  // outlive the run's Outputs and every Tensor taken from them, because the last owner of their
  // memory frees it in the order of this stream. cudaStreamPerThread is a different stream in each
  // thread. If the last owner is on another thread, the memory is freed after the run, but not
  // after other work that the caller has enqueued on the stream of the run.
  Stream stream = nullptr;
  // Provides the memory of temporaries and outputs, and must outlive the outputs. nullptr: the
  // allocator of the device. Memory that a library needs only during one call always comes from the
  // device.
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
  PassOptions passes;  // ignored here; compile() runs the passes
  // false skips verification and race checks, for tests that run a program with races.
  bool verify = true;
  // The stream of runs whose RunOptions::stream is nullptr. Executables that run one after another
  // may share it. nullptr: the Executable creates a stream.
  std::shared_ptr<SharedStream> stream;
  // Communicators that several Executables of one World and one job monitor share. Each Executable
  // adds the communicators that its program needs and that do not exist yet. nullptr: the
  // Executable creates communicators that it does not share.
  std::shared_ptr<Communicators> communicators;
  // A fault for tests. It acts only on the rank that it names.
  std::optional<InjectedFault> inject;
};

// A host program that is prepared for runs on one rank.
//
// Threads:  run() may be called from several threads. Among all Executables of a job monitor, only
//           one communicating run is issued at a time.
// Order:    callers must issue communicating runs in the same order on every rank. Otherwise the
//           job ends with an error that says so. All Executables of a World must use one job
//           monitor. This is so unless Context::monitor names different ones. With two monitors,
//           the ranks could wait for each other forever if runs come from several threads or in
//           another order on one rank.
// Caching:  plans are cached by sizes and strides. A repeated run evaluates no symbol, compiles
//           nothing, creates no event and allocates no heap memory per instruction. (Exceptions
//           that allocate: the instructions Check and Print, and the reference evaluator.)
// NCCL:     the first run with new sizes waits until every rank has begun it. The ranks then
//           compare the operations that they will post (host/run/match_collectives_across_ranks.h).
class Executable {
 public:
  // Prepares the program. All ranks of a job must call this constructor together, because they
  // compare their programs. If the programs differ, every rank throws UserError with the first line
  // that differs.
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
  //         has failed and no call has thrown its error yet, run() throws it.
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});

  struct Stats {
    int64_t programs = 1;  // in a FusionExecutor: programs that it holds now
    int64_t plans = 0;     // created so far
    int64_t runs = 0;
    // Largest amount of memory that a run held at once for temporaries and outputs. It is counted
    // in program order, not in the order in which the device allocates and frees.
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
