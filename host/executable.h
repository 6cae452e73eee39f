#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/cache_limits.h"
#include "host/context.h"
#include "host/device/device_tensor.h"
#include "host/job/inject_fault.h"
#include "host/outputs.h"
#include "host/program/pass_options.h"
#include "host/program/program.h"

namespace heddle::host {

class PreparedRun;       // host/prepared_run.h
class RunProfile;        // host/run/profile/run_profile.h
struct ExecutableParts;  // internal

struct RunOptions {
  // The stream on which the run begins. Work that the caller enqueues on the stream afterwards
  // executes after the run. nullptr: a stream that the Executable creates. All programs of a
  // FusionExecutor share one such stream.
  // A stream of the caller must outlive the run's Outputs and every Tensor taken from them, because
  // their memory is freed on this stream.
  // cudaStreamPerThread is a different stream in each thread. If a second thread releases the last
  // reference to an output, the memory is freed on the stream of the second thread. That stream
  // waits for the run, but not for work that the thread of run() has enqueued afterwards. This work
  // must have completed before the second thread releases the output.
  Stream stream = nullptr;
  // Allocates the memory of temporaries and outputs, with 256-byte alignment. The allocator must
  // outlive the outputs. nullptr: the allocator of the device. Some libraries also allocate memory
  // for the duration of one call. On CUDA, an Executable also keeps 4 KiB per stream of the
  // program for the counters of kernels, and several times this amount if runs overlap. All this
  // memory comes from the device.
  Allocator* allocator = nullptr;
  // Tensors that receive the results: entry i receives output i. An entry without data is ignored.
  // The program usually writes directly into the tensor if both of these are true:
  // - Output i fills a complete allocation of the program, or is a view that only permutes the axes
  //   of such an allocation.
  // - The tensor has the layout that the program chose for the output, or no instruction needs this
  //   layout. Instructions that need it are collectives, sends, receives, library calls other than
  //   matrix products, copies to the host, and some views, such as reshapes. If no instruction
  //   needs it, the tensor may have any memory order, and gaps.
  // In all other cases, the run copies the output to the tensor at the end. run() throws UserError
  // if one of these rules is broken:
  // - There are no more entries than outputs.
  // - The tensor has the dtype and the sizes of the output on this rank.
  // - The address is a multiple of the element size, and axes of several elements have positive
  //   strides.
  // - No two of these tensors overlap.
  // - A tensor that the program writes directly overlaps no input.
  // - No tensor overlaps an input that the run writes.
  // - No tensor is in host memory or in the memory of another GPU.
  // - The elements of a tensor do not overlap each other.
  // - If a descriptor gives unsharded sizes, they are those of the output.
  // - If the user requires a memory order of the output (Layout::required), the tensor has it.
  // - An output that is stored in an input has no entry with data.
  std::vector<Tensor> preallocated;
  // Positions of the donated inputs. The caller gives up their values, and the run may store
  // outputs and temporaries in their memory. Afterwards the tensors may contain anything, also if
  // the run fails. If the run stores an output there, the output keeps the owner of the
  // donated tensor alive, and Outputs::aliased() names the input. In a job of several ranks, all
  // ranks must donate the same inputs. run() throws UserError in these cases:
  // - A position is not that of an input.
  // - A donated input is a scalar, is in host memory, or is not allocated as inputDesc() says
  //   (host/tensor.h).
  // - An input is donated twice.
  // - Another input or a preallocated tensor shares memory with a donated input.
  // - An output is a view of a donated input, or the program declares that the output is stored in
  //   a donated input (`return %w1 in %w`).
  std::vector<size_t> donated;
  // Records when each instruction ran. It must outlive the run. nullptr: nothing is recorded.
  RunProfile* profile = nullptr;
};

struct ExecutableOptions {
  // false: the Executable skips verification and race checks. For tests of programs with races.
  bool verify = true;
  // Sizes for which the constructor verifies the program (host/verify/verify.h). nullopt: verify()
  // chooses sizes.
  std::optional<SizeBindings> verified_sizes = {};
  // true: every run counts the elements that are NaN or infinite, in all float tensors and scalars
  // that its kernels, library calls, copies, collectives, sends and receives read and write. The
  // environment variable HEDDLE_CHECK_NUMERICS=1 does the same for all Executables of the process.
  // Report: Outputs::numerics() returns it. When heddle finds that the run has ended, it also
  //         prints the report to stderr, unless the previous run of this Executable had an equal
  //         report. The run does not fail.
  // Cost:   on the CPU, one more sweep over each of these tensors, by one thread. On CUDA, each of
  //         them is copied to the host, and run() waits for the copy. The value false costs
  //         nothing.
  bool check_numerics = false;
  // Maps keys of kernels to the parameters of candidates in text form, and keys of library calls to
  // algorithms, as `heddle run --tune=auto --export` writes them. A candidate is one of several
  // ways to compute a kernel. The entries have no effect on kernels for which the program names a
  // candidate (Kernel::candidate). Any other kernel without a usable entry uses its first
  // candidate. A library call without a usable entry uses an algorithm that the device measures. If
  // `choices_only` is true, such a kernel is an error. If there are entries for library calls, such
  // a call is an error too. With entries, each new plan creates all candidates of each kernel,
  // which takes milliseconds. In a job, all ranks must pass equal choices, because results of
  // different candidates may differ in the last bits.
  std::map<std::string, std::string> kernel_choices = {};
  bool choices_only = false;
  CacheLimits caches = {};  // the limit of programs has no effect
  // Names of the outputs for Outputs::tensor(). Empty: the names in the program.
  std::vector<std::string> output_names = {};
  // A deliberate fault, for tests. It acts only on the rank that it names.
  std::optional<InjectedFault> inject;
};

// A host program that is prepared for runs on one rank.
//
// Threads:  run() may be called from several threads. A communicating run is a run of a program
//           that communicates on some rank. While a rank issues a communicating run, every other
//           communicating run on the rank waits, including runs of other Executables of the World.
// Order:    callers must issue communicating runs in the same order on every rank. Otherwise the
//           job fails with an error that names the cause.
// Caching:  a plan is the program bound to the device and to the shapes of a run. The shapes
//           are the dtypes, sizes, strides and alignments of the inputs and preallocated tensors,
//           the choice of donated inputs, and the values of inputs that decide sizes. A run with
//           the shapes of a cached plan compiles nothing. It also creates no event and allocates no
//           heap memory, if earlier runs have completed and their Outputs, and the Tensors taken
//           from them, are destroyed. Exceptions: a run with a profile or with check_numerics
//           allocates. So do the instructions Check and Print, and the reference evaluator, which
//           runs kernels if there is no C++ compiler. A device may allocate too, for example if the
//           queue of a stream grows.
// NCCL:     the first run with new sizes waits until every rank has begun it. The ranks then
//           compare the communication operations that they will enqueue. If two ranks differ, both
//           throw UserError, and the job fails.
class Executable {
 public:
  // Prepares the program. The constructor is collective over the job: the ranks compare their
  // programs. If the programs differ, every rank throws UserError with the first line that differs.
  Executable(Program program, const Context& context, const ExecutableOptions& options = {});
  // Waits until all runs have ended, and releases the tensor owners that they keep. The calling
  // thread must hold no lock that the destructor of an owner needs.
  ~Executable();
  Executable(Executable&&) noexcept;

  // Returns the program. Every mesh in it has its size in this job.
  const Program& program() const;

  // Starts a run and returns before the device has finished.
  // Memory: the run keeps Tensor::owner of the inputs and of the preallocated tensors until its
  //         work is done. It releases them in Outputs::wait(), in a later run, or on a thread that
  //         polls every few milliseconds. The destructor of an owner may therefore run on any
  //         thread. Memory without an owner must stay valid until Outputs::wait() returns, or until
  //         all work of the run on the run's stream is done. A tensor with `in_host_memory` must
  //         stay valid until run() returns.
  // Errors: UserError if an argument is missing, is in the memory of another GPU, or has a wrong
  //         dtype, number of axes or size. Also UserError if a size symbol has two values, a
  //         preallocated tensor does not fit, or memory is exhausted. Error::code() distinguishes
  //         these errors. In a job of one rank, an error that occurs after run() has returned
  //         belongs to its run alone. Outputs::wait() throws it. A run that reads an output of the
  //         failed run (with its Tensor::owner) fails too. Other runs continue, unless the device
  //         is lost: then every unfinished run fails. If nobody waits for a failed run, it is
  //         counted (Stats::unreported_failures). Its error is printed to stderr, unless the run
  //         failed only because it read an output of a failed run.
  //         In a job of several ranks, the failure of a run fails the job on all ranks (see
  //         Context). In such a job, run() also throws the error of an earlier run, if no call has
  //         thrown this error yet.
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});

  // Prepares runs with the shapes of these arguments (host/prepared_run.h). A prepared run does not
  // compare its arguments with those of earlier runs. With hundreds of inputs, this comparison
  // takes most of the host time of a run. Every prepared run uses `options`, for example the stream
  // and the preallocated tensors. prepareRun() starts no run, and throws the errors of run(). If
  // the program communicates, every rank must call this function, at the same position in its
  // sequence of runs.
  PreparedRun prepareRun(const std::vector<Argument>& inputs, const RunOptions& options = {});

  struct Stats {
    int64_t programs = 1;  // number of programs that exist now; an Executable has one
    int64_t plans = 0;     // number of plans created so far
    // `plan_hits` is the number of calls of run(), prepareRun() and FusionExecutor::prepare() that
    // found their plan in a cache. Runs of a PreparedRun do not count. A call that finds no plan
    // creates one (`plans`), or waits for another thread that is creating it. `plan_evictions` is
    // the number of plans that a program dropped because its cache was full (CacheLimits).
    int64_t plan_hits = 0;
    int64_t plan_evictions = 0;
    // FusionExecutor only. `program_hits` is the number of calls that found no plan in the table of
    // the plans of all programs (CacheLimits::plans), but found their program. Calls of program()
    // and kernelText() use no plan, and count if they find their program. `program_evictions` is
    // the number of programs that were dropped because the cache was full.
    int64_t program_hits = 0;
    int64_t program_evictions = 0;
    // FusionExecutor only. `segmentations` is the number of times that all ops of the fusion were
    // split into segments. `split_calls` is the number of library calls that the sizes did not
    // allow, summed over all times that the fusion was lowered. Only the ops of these calls were
    // segmented again.
    int64_t segmentations = 0;
    int64_t split_calls = 0;
    int64_t runs = 0;  // number of runs issued so far
    // Largest number of bytes that a run held at once for temporaries and outputs. The count
    // assumes that memory is allocated and freed in the order of the instructions. The order on the
    // device can differ, because streams run concurrently.
    int64_t peak_bytes = 0;
    // The value that peak_bytes would have for the same run if no value reused the memory of a dead
    // value or of a donated input. It is never less than peak_bytes.
    int64_t peak_bytes_without_reuse = 0;
    int64_t held_bytes = 0;  // bytes of outputs that are not freed yet
    // Number of failed runs for which no call has thrown the error. A failed run is counted once
    // both of these are true: its Outputs and all Tensors taken from them are destroyed, and heddle
    // has found that the run has ended, for example in a later run. A FusionExecutor also counts
    // runs of dropped programs.
    int64_t unreported_failures = 0;
    // Each new plan asks for its kernels. These counts say how it got them.
    int64_t kernel_texts = 0;      // number of kernel texts that were generated
    int64_t kernels_reused = 0;    // number of kernels that were found without generating a text
    int64_t kernels_compiled = 0;  // number of texts that were compiled
    int64_t kernels_loaded = 0;    // number of texts whose image the image cache had already
    int64_t kernels_unloaded = 0;  // number of texts whose kernels were unloaded (CacheLimits)
    int64_t kernel_bytes = 0;      // bytes of the images and texts of the kernels that are loaded
    double compile_seconds = 0;    // time spent on compiling or reading images, in seconds
    int64_t communicators = 0;     // number of communicators of this rank
    double communicator_seconds = 0;  // time spent on creating communicators, in seconds
  };
  // Returns the counts. The call takes about as long as the creation of a plan, because it computes
  // peak_bytes_without_reuse.
  Stats stats() const;

  // Returns the algorithms that libraries use for the matrix products and attentions of the runs so
  // far, as entries for ExecutableOptions::kernel_choices. In a job, the result of rank 0 has the
  // entries of all ranks.
  std::map<std::string, std::string> algorithmChoices() const;

 private:
  friend class FusionExecutor;
  friend class PreparedRun;
  friend struct ExecutableParts;
  struct Impl;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
