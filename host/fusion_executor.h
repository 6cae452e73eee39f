#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host/compile.h"
#include "host/executable.h"

namespace heddle::host {

// Runs a fusion on one rank. It caches host programs, and compiles a new one if no cached program
// fits the inputs of a run.
//
// One rank:      a program depends on the layout class of the inputs (memory order and contiguity)
//                and on the sizes that decide whether a library computes an attention. Other new
//                sizes, for example a new batch size, only need a new plan.
// Several ranks: the fusion is compiled with the sizes of the run as its size defaults. The sizes
//                decide the chunks of collectives, the steps of resharding, and which tensors are
//                gathered because they do not divide evenly. (For chunks,
//                CompileOptions::passes.chunk_sizes takes precedence where given.)
// New sizes:     with several ranks, a run with new sizes lowers the fusion again. This takes
//                milliseconds for a large fusion and needs no communication. Usually the result
//                equals a cached program, and only a new plan is built for it. Otherwise all ranks
//                create a new Executable together. This decision depends only on unsharded sizes,
//                so all ranks decide alike.
// No mesh:       in a job of several ranks, a fusion without a mesh is lowered once. It is lowered
//                again only if the sizes change that decide whether a library computes an
//                attention.
// Cache:         of more than kMostPrograms programs, the one that was not used for the longest
//                time is dropped. All ranks drop the same one, because they begin runs in one
//                order.
// Shared:        the programs share the communicators, the job monitor and one stream, which serves
//                runs without RunOptions::stream.
class FusionExecutor {
 public:
  static constexpr size_t kMostPrograms = 64;

  FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options = {});
  ~FusionExecutor();
  FusionExecutor(FusionExecutor&&) noexcept;

  // Starts a run. Threads, order, memory and errors are those of Executable::run().
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});

  // Returns the sums over all programs so far. Exceptions: `programs` counts the programs that are
  // held now, and `peak_bytes` is the largest value of a program.
  Executable::Stats stats() const;

  // Returns, per input, the descriptor that a run on this rank accepts without a copy. The entry of
  // a scalar is empty. `sizes` gives unsharded sizes; the fusion's defaults complete them. A run
  // also accepts other descriptors, except for an input that a collective or a send reads directly.
  // The call lowers the fusion, but does not communicate.
  // UserError: `sizes` contains a symbol that no input of the fusion has, or a symbol has no value.
  std::vector<TensorDesc> inputDescs(const SizeBindings& sizes = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
