#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "comm/communicator.h"
#include "comm/control_board.h"
#include "host/device.h"
#include "host/inject.h"
#include "host/passes.h"
#include "host/program.h"
#include "ir/host_tensor.h"
#include "ir/reference.h"

namespace heddle::host {

// A tensor in device memory; without data where the rank is outside of the tensor's mesh
// (`desc.held`). `owner` keeps the memory alive: empty when the caller owns it.
struct Tensor {
  void* data = nullptr;
  TensorDesc desc;
  std::shared_ptr<void> owner;
  // As an input: `data` is in host memory. Such a tensor has no axes and is passed by value: run()
  // has read its element when it returns. On a device that is the host, too.
  bool in_host_memory = false;
};

// A tensor or a scalar, as given to a run or returned from one.
using Argument = std::variant<Tensor, Scalar>;

// What a rank runs on. Borrowed: device, world, cache and board outlive every Executable made with
// it.
//
// In a job of several ranks all are told when one of them fails, is killed or stopped, or leaves in
// the middle of a run: within the deadline of the board, what the others wait for throws UserError,
// with a line for each rank that says at which instruction it was. Nothing here ends the process.
// The World cannot be used afterwards, that of MPI for nothing but to end the process.
struct Context {
  Device* device = nullptr;
  comm::World* world = nullptr;           // nullptr: a job of one rank
  codegen::ImageCache* images = nullptr;  // nullptr: a private cache in the default folder
  comm::ControlBoard* board = nullptr;    // nullptr: the one that the World keeps
  comm::ControlOptions control = {};      // of that one, by who needs it first: the deadline
};

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
  RunTrace* trace = nullptr;  // when each instruction ran; it outlives the run
};

// What a run gives back, before the device has finished. Keeps what it needs alive by itself: it
// may outlive later runs and the Executable, not the Device, nor the allocator or the stream that
// the caller gave to the run.
class Outputs {
 public:
  struct State;
  explicit Outputs(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // The host waits for the run; throws its first error, naming the instruction, each time it is
  // called. An error of the device that comes from no one instruction (a CUDA fault) names the
  // call. A run whose collectives wait for peers on the device also throws what the job has failed
  // of, even if it ended before: collectives that were given up end there like good ones.
  void wait() const;
  size_t size() const;
  const Argument& operator[](size_t i) const;  // data is valid after wait(), or on the run's stream

 private:
  std::shared_ptr<State> state_;
};

class SharedStream;   // host/run_state.h
class Communicators;  // host/communicators.h

struct ExecutableOptions {
  PassOptions passes;
  bool verify = true;  // false: a program with races runs as it is (for tests of the checks)
  // Of runs that name no stream, for several Executables that follow each other on it; nullptr: one
  // of its own.
  std::shared_ptr<SharedStream> stream;
  // Of several Executables on one World and one control board, each of which adds what its program
  // lacks; nullptr: its own.
  std::shared_ptr<Communicators> communicators;
  std::optional<Fault> inject;  // on purpose, on its rank alone
};

// A prepared program. run() may be called from several threads; runs that communicate are
// serialised, also with those of other Executables on the same control board, and the callers see
// to it that every rank issues them in the same order (else the job ends with an error that says
// so); over NCCL the first run with sizes that are new waits until all ranks have begun it, to
// compare what they post. Executables of one World are to be on one board, as they are unless the
// Context names others: ranks that run two of them in different order would wait for each other,
// and several threads make or run them. Plans are cached by sizes and strides; the steady run
// evaluates no symbol, compiles nothing, makes no event and allocates no heap memory an instruction
// (Check, Print and the reference evaluator do).
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

// Fusion -> passes -> segments -> lowering -> passes -> Program, for one layout class of inputs.
// Meshes take their size from `job_size`. Deterministic: the same on every rank.
struct CompileOptions {
  PassOptions passes;
  std::function<void(std::string_view stage, const Fusion&)>
      dump_fusion;  // after a pass that changed it
};
Program compile(const Fusion& fusion, int64_t job_size, const CompileOptions& options = {});

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
// runs that name none, communicators and control board.
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

// The local descriptor of input or output `position` of the program on `rank`, for these sizes:
// what a caller must pass or will get.
TensorDesc inputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                     int64_t rank, int64_t ranks);
TensorDesc outputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                      int64_t rank, int64_t ranks);

// Host <-> device, for callers without memory of their own. Both wait.
Tensor toDevice(Device& device, Allocator& allocator, const HostTensor& local,
                const TensorDesc& desc);
HostTensor toHost(Device& device, const Tensor& tensor);

}  // namespace heddle::host
