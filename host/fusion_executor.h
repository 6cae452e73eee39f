#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/compile.h"
#include "host/executable.h"
#include "host/tensor.h"

namespace heddle::host {

// The work that one call of FusionExecutor::prepareAsync() has started. Thread-safe.
class Preparation {
 public:
  bool isDone() const;
  // Blocks until the preparation has ended. If it failed, every call throws its error.
  void wait() const;

 private:
  friend class FusionExecutor;
  struct State;
  explicit Preparation(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Runs a fusion on this rank. A FusionExecutor caches host programs. If no cached program fits the
// inputs of a run, it compiles a new one.
//
// Job of 1 rank: a program depends on the memory order and contiguity of the inputs. It also
//                depends on three decisions that sizes make: whether a size that may be 1 (`n?`) is
//                1, how a reshape splits and merges axes, and whether a library computes an
//                attention. Any other new size, for example a new batch size, only needs a new plan
//                (see Executable).
// Several ranks: a fusion with a mesh is compiled for the sizes of the run. The sizes decide how
//                tensors are resharded. In particular, a tensor is gathered if its sharded axis
//                does not divide evenly among the ranks. The sizes also decide into how many chunks
//                of rows a collective is split. For symbols in CompileOptions::passes.chunk_sizes,
//                the sizes given there decide the number of chunks instead.
// New sizes:     with several ranks and a mesh, a run with new sizes lowers the fusion again, that
//                is, translates it to a host program. Exception: each lowering records the size
//                expressions that decided something, such as t % 4. If all of them have the same
//                values as in a recent lowering, the run uses the program of that lowering.
//                Lowering takes milliseconds for a large fusion and needs no communication. Usually
//                the result equals a cached program, which then only gets a new plan. Otherwise all
//                ranks create a new Executable together. The result depends only on unsharded
//                sizes. These are equal on all ranks, so all ranks make the same decision.
// No mesh:       in a job of several ranks, a fusion without a mesh is lowered again only if new
//                sizes change one of the three decisions above.
// Cache:         CompileOptions::caches limits the numbers of programs and plans. When a cache is
//                full, the least recently used entry is dropped. All ranks drop the same program,
//                because they begin runs in the same order.
// Threads:       a thread that lowers a fusion or compiles kernels holds no lock that runs with
//                prepared shapes need. If two threads need the same new program or plan, it is
//                created once. A communicating run compiles its kernels first. It then waits
//                while another communicating run of this rank is issued, because all ranks must
//                issue these runs in one order.
// Shared:        all programs share the kernels. A kernel that two programs or plans need is
//                compiled once. In a job of several ranks, all programs also share the
//                communicators and the job monitor. Runs without RunOptions::stream share one
//                stream.
class FusionExecutor {
 public:
  FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options = {});
  ~FusionExecutor();
  FusionExecutor(FusionExecutor&&) noexcept;

  // Starts a run. The rules of Executable::run() for threads, order, memory and errors apply.
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});

  // Prepares runs with these shapes (see Executable::prepareRun()), and creates a program if no
  // cached program fits. The prepared run keeps its program, even if the cache drops the program.
  // In a job of several ranks, all ranks must prepare the same runs in the same order.
  PreparedRun prepareRun(const std::vector<Argument>& inputs, const RunOptions& options = {});

  // Prepares runs with these shapes: creates the program and the plan, and compiles and loads the
  // kernels. A later run() with equal shapes then starts without preparation. `shapes` has the same
  // elements as the inputs of run(), but a tensor in device memory needs no data: a tensor whose
  // `data` is nullptr stands for one with an alignment of 256 bytes. A tensor in host memory needs
  // data. The values of scalars and of tensors in host memory matter only if they decide sizes. The
  // preallocated and the donated tensors of `options` are part of the shapes, except preallocated
  // tensors that have neither data nor axes. Throws the errors of run(). In a job of several ranks,
  // all ranks must call this function at the same position in their sequences of runs.
  void prepare(const std::vector<Argument>& shapes, const RunOptions& options = {});
  // Does the work of prepare() on a new thread. The destructor of the FusionExecutor waits for the
  // thread. Throws UserError in a job of several ranks.
  Preparation prepareAsync(std::vector<Argument> shapes, const RunOptions& options = {});
  // Returns whether this FusionExecutor already has the program and the plan for these shapes.
  // Returns false for shapes with which run() throws. In a job of several ranks, ranks may differ:
  // the result says nothing about the caches of other ranks. The call does not count as a use, and
  // does not communicate.
  bool isPrepared(const std::vector<Argument>& shapes, const RunOptions& options = {}) const;

  // The next three functions describe a run with these shapes. program() returns its host program.
  // segments() returns one line per segment. kernelText() returns the source of a kernel that this
  // rank launches, with the names of the fusion (docs/kernels.md). `i` counts these kernels from 0,
  // in the order of their first launches. If no program fits, program() and kernelText() create it.
  // kernelText() assumes aligned tensors with the strides of inputDescs(); a run with other tensors
  // may use another variant of the kernel. In a job of several ranks, all ranks must call program()
  // and kernelText() at the same position in their sequences of runs. All three functions throw
  // UserError if the shapes do not fit the fusion. kernelText() also throws it if there is no
  // kernel `i`.
  std::shared_ptr<const Program> program(const std::vector<Argument>& shapes);
  std::vector<std::string> segments(const std::vector<Argument>& shapes) const;
  std::string kernelText(const std::vector<Argument>& shapes, size_t i);

  // Returns the sums over all programs that this object has created. Exceptions: `programs` is the
  // number of cached programs. `peak_bytes` and `peak_bytes_without_reuse` belong to the program
  // with the largest `peak_bytes`.
  Executable::Stats stats() const;

  // Returns, for each input, the descriptor of the block that this rank passes to run(): its sizes
  // and its preferred strides. The entry of a scalar is empty. A run also accepts different
  // strides, except for an input that a collective, a send or a receive reads or writes directly.
  // `sizes` gives unsharded sizes. It also gives the values of inputs that decide sizes: the value
  // of input %n under the key `%n`. A missing size takes its default (Fusion::size_defaults). A
  // missing value takes the default of the input.
  // The call lowers the fusion, but does not communicate.
  // Throws UserError if `sizes` contains a symbol that no input of the fusion has, or if a symbol
  // has no value.
  std::vector<TensorDesc> inputDescs(const SizeBindings& sizes = {}) const;
  // Returns the descriptors of all inputs and outputs on every rank of the job. `sizes` has the
  // same meaning as in inputDescs(). Does not communicate.
  std::vector<RankDescs> describe(const SizeBindings& sizes = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
