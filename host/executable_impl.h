#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/device/kernel_choices.h"
#include "host/executable.h"
#include "host/executable_parts.h"
#include "host/job/communicators.h"
#include "host/plan/kernel_store.h"
#include "host/plan/run_key.h"
#include "host/plan/size_inputs.h"
#include "host/prepared_run.h"
#include "host/run/evaluator.h"
#include "host/run/match_collectives_across_ranks.h"
#include "host/run/run_order.h"
#include "host/run/run_state.h"

namespace heddle::host {

// Returns the tensors of a run. The result refers to the lists in `inputs` and `options`.
inline RunTensors tensorsOf(const std::vector<Argument>& inputs, const RunOptions& options) {
  return {inputs, options.preallocated, options.donated};
}

struct Executable::Impl {
  Impl(Program p, const Context& context, const ExecutableOptions& o, const ExecutableParts& parts);
  ~Impl();
  // Starts a run. `plan` is the plan of this Executable for these arguments. If it is nullptr, the
  // function finds or creates the plan, and stores it in `found`.
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& run_options,
              const std::shared_ptr<const Plan>& plan,
              std::shared_ptr<const Plan>* found = nullptr);
  // Returns the plan that run() would use for these arguments, and creates it if there is none.
  std::shared_ptr<const Plan> prepare(const std::vector<Argument>& inputs,
                                      const RunOptions& run_options);

  void makeCommunicators();
  // Locks RunOrder::running if the program communicates. If such a run has no plan yet, the
  // function first compiles its kernels, so that no other run waits for the compiler. Does nothing
  // if the program does not communicate.
  std::unique_lock<std::mutex> lockOrder(const std::vector<Argument>& inputs,
                                         const RunOptions& run_options, bool has_plan);
  // Finds or creates the plan of a run. The caller holds the lock of lockOrder().
  std::shared_ptr<const Plan> planFor(const std::vector<Argument>& inputs,
                                      const RunOptions& run_options);
  // Returns whether run() would find its plan. Does not count as a use of the plan.
  bool hasPlan(const std::vector<Argument>& inputs, const RunOptions& run_options);
  // Returns the cached plan of a run and counts it in plan_hits, or returns nullptr.
  std::shared_ptr<const Plan> cachedPlan(const std::vector<Argument>& inputs,
                                         const RunOptions& run_options);
  // issue() takes a RunState from `states`, calls issueWith(), and gives the state back.
  Outputs issue(const std::shared_ptr<const Plan>& plan, Stream stream,
                const std::vector<Argument>& inputs, const RunOptions& run_options,
                EndedRuns& ended);
  Outputs issueWith(RunState& state, const std::shared_ptr<const Plan>& plan, Stream stream,
                    const std::vector<Argument>& inputs, const RunOptions& run_options);
  void waitForLatest(Stream stream);
  void keepOwners(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated,
                  Completion& completion);
  void leaveFailed(RunState& state, Stream stream);
  void joinMonitor(const Context& context, comm::JobMonitor* given);
  void makeRunner(const std::shared_ptr<SharedStream>& stream, int64_t number);
  void nameInstructions();
  const InjectedFault* faultOfRun(const Plan& plan);
  void notePeak(int64_t bytes, const std::shared_ptr<const Plan>& plan);

  Program program;  // every mesh in it has its size in this job
  Program inlined;  // the executed program: inlineCalls(program)
  Device& device;
  comm::World* world;
  int64_t rank = 0;
  int64_t ranks = 1;
  // Number of uncaught exceptions when the constructor ran; ~Impl() compares it.
  int exceptions = std::uncaught_exceptions();
  bool verifies;
  bool checks_numerics;
  // nullopt: a kernel uses its first candidate, unless the program names another one.
  std::optional<KernelChoices> choices;
  std::vector<std::string> output_names;
  std::optional<InjectedFault> inject;  // nullopt: no fault on this rank
  std::atomic<bool> injected{false};
  comm::JobMonitor* monitor = nullptr;
  bool on_shared_monitor = false;  // true: `monitor` is the monitor of the World
  uint64_t hash = 0;               // identifies the program on the job monitor
  // true: the program communicates on some rank. All ranks then count its runs, even a rank that
  // itself posts no communication.
  bool communicates = false;
  std::shared_ptr<RunOrder> order;
  std::vector<std::unique_ptr<comm::World>> own_worlds;
  std::shared_ptr<Communicators> communicators;
  std::shared_ptr<KernelStore> kernels;
  std::unique_ptr<AlgorithmAgreement> algorithms;
  std::unique_ptr<CrossRankMatcher> posts;
  std::shared_ptr<RunResources> resources;
  std::unique_ptr<HostIrEvaluator> evaluator;

  class Flight;  // the creation of a plan
  // Guards `plans`, `planned` and `flights`. No thread holds it while it creates a plan.
  std::mutex plans_mutex;
  std::condition_variable plan_ended;
  RunCache<std::shared_ptr<const Plan>> plans;
  RunCache<int64_t> planned;  // the arguments for which a thread is creating a plan
  int64_t flights = 0;        // number of plans whose creation has begun so far
  RunStatePool states;

  std::atomic<int64_t> plan_count{0};
  std::atomic<int64_t> plan_hits{0};
  std::atomic<int64_t> run_count{0};
  std::atomic<int64_t> peak_bytes{-1};  // -1: no run yet
  mutable std::mutex largest_mutex;     // guards the members below
  std::shared_ptr<const Plan> largest;  // the plan of the run with peak_bytes; nullptr: no run yet
};

struct PreparedRun::Impl {
  // `keep` keeps the Executable of `target` alive. nullptr: the caller keeps it alive.
  Impl(Executable::Impl& target, std::shared_ptr<Executable> keep, std::shared_ptr<const Plan> plan,
       std::vector<Argument> inputs, RunOptions options);

  Executable::Impl& target;
  std::shared_ptr<Executable> keep;
  std::shared_ptr<const Plan> plan;
  std::vector<Argument> inputs;
  RunOptions options;
  SizeInputs sizes;               // the inputs that decide sizes or where slices begin
  std::vector<LateRange> ranges;  // the values of these inputs for which the plan is valid
  // The alignments in bytes of the addresses for which the plan was created.
  std::vector<int64_t> input_alignments;
  std::vector<int64_t> output_alignments;
};

// Adds the counts of a store to those of an Executable.
void addCounts(const KernelStore& kernels, Executable::Stats& stats);

}  // namespace heddle::host
