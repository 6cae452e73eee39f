#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host/compile.h"
#include "host/executable.h"

namespace heddle::host {

// A fusion ready to run on one rank, by a program for what the inputs of the run ask for.
//
// In a job of one rank that is their layout class (memory order and contiguity) and the widths of
// attentions, whatever the other sizes: a new batch makes a plan and nothing else.
//
// In a job of several ranks it is what compile() makes of the fusion with the sizes of the run in
// the place of its size defaults: chunks of collectives, ways of resharding, and what is gathered
// because it does not divide, are decided by them (by CompileOptions::passes.chunk_sizes before
// them, where given). Only unsharded sizes are looked at, so all ranks decide alike. Sizes that are
// new are lowered, which takes milliseconds for a large fusion and meets no other rank; most often
// what comes out is a program that is there already, which then gets a plan for them. Only a
// program that is new becomes an Executable, which the ranks make together. A fusion without a mesh
// is lowered once.
//
// Programs that were not used for long go when there are more than kMostPrograms: the same ones on
// all ranks, since runs are begun in one order on all of them. The programs share the stream of
// runs that name none, communicators and monitor_options job monitor.
class FusionExecutor {
 public:
  static constexpr size_t kMostPrograms = 64;

  FusionExecutor(Fusion fusion, const Context& context, const CompileOptions& options = {});
  ~FusionExecutor();
  FusionExecutor(FusionExecutor&&) noexcept;
  // May be called from several threads, as Executable::run().
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& options = {});
  Executable::Stats stats() const;  // summed over the programs that there have been
  // What a run takes from this rank without a copy, by input (empty for scalars), at these
  // unsharded sizes; the fusion's default stands for each that is not given. A run may be given
  // others, but for inputs that are sent to other ranks themselves. Lowers the fusion, and meets no
  // other rank. UserError: a size that the fusion does not have, or one that is not known.
  std::vector<TensorDesc> inputDescs(const SizeBindings& sizes = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
