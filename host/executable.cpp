#include "host/executable.h"

#include <atomic>
#include <boost/container_hash/hash.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>

#include "host/job/communicators.h"
#include "host/job/worlds.h"
#include "host/plan/bind_inputs.h"
#include "host/plan/kernel_store.h"
#include "host/plan/plan_cache.h"
#include "host/program/teams.h"
#include "host/program/visit.h"
#include "host/run/bind_run.h"
#include "host/run/evaluator.h"
#include "host/run/issue.h"
#include "host/run/match_collectives_across_ranks.h"
#include "host/run/run_order.h"
#include "host/run/run_result.h"
#include "host/run/run_state.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

// Prints, once per process, that the slow reference evaluator runs the kernels.
void reportReference(const Device& device) {
  static std::once_flag reported;
  std::call_once(reported, [&] {
    fmt::print(stderr, "heddle: kernels run in the slow reference evaluator, because {}\n",
               device.whyNoCompiler());
  });
}

}  // namespace

struct Executable::Impl {
  Impl(Program p, const Context& context, const ExecutableOptions& o);
  ~Impl();
  Outputs run(const std::vector<Argument>& inputs, const RunOptions& run_options);

  void makeCommunicators();
  std::shared_ptr<const Plan> planFor(const std::vector<Argument>& inputs,
                                      const RunOptions& run_options, Stream stream);
  Outputs issue(const std::shared_ptr<const Plan>& plan, Stream stream,
                const std::vector<Argument>& inputs, const RunOptions& run_options);
  Outputs issueWith(RunState& state, const std::shared_ptr<const Plan>& plan, Stream stream,
                    const std::vector<Argument>& inputs, const RunOptions& run_options);
  void waitForLatest(Stream stream);
  void leaveFailed(RunState& state, Stream stream);
  void joinMonitor(const Context& context);
  void makeRunner(const std::shared_ptr<SharedStream>& stream, int64_t number);
  void nameInstructions();
  // Reports that this rank has failed, so that the other ranks stop waiting for it.
  void failJob(const char* reason) const noexcept;
  const InjectedFault* faultOfRun(const Plan& plan);

  Program program;  // every mesh in it has its size in this job
  Program inlined;  // the executed program: inlineCalls(program)
  Device& device;
  comm::World* world;
  int64_t rank = 0;
  int64_t ranks = 1;
  int exceptions = std::uncaught_exceptions();
  bool verifies;
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
  KernelStore kernels;
  std::unique_ptr<AlgorithmAgreement> matmuls;
  std::unique_ptr<CrossRankMatcher> posts;
  std::shared_ptr<RunResources> resources;
  std::unique_ptr<HostIrEvaluator> evaluator;

  std::mutex planning;
  PlanCache plans;
  RunStatePool states;

  std::atomic<int64_t> plan_count{0};
  std::atomic<int64_t> run_count{0};
  std::atomic<int64_t> peak_bytes{0};
};

namespace {

constexpr std::chrono::seconds kLongestUnwinding{3};

Device& deviceOf(const Context& context) {
  constexpr const char* kWhy = "an Executable needs a device";
  if (context.device == nullptr && context.world != nullptr) context.world->fail(kWhy);
  HEDDLE_USER_CHECK(context.device != nullptr, "{}", kWhy);
  return *context.device;
}

}  // namespace

Executable::Impl::Impl(Program p, const Context& context, const ExecutableOptions& options)
    : device(deviceOf(context)),
      world(context.world),
      rank(world == nullptr ? 0 : world->rank()),
      ranks(world == nullptr ? 1 : world->size()),
      verifies(options.verify),
      inject(options.inject && options.inject->rank == rank ? options.inject : std::nullopt),
      communicators(options.communicators && ranks > 1 ? options.communicators
                                                       : std::make_shared<Communicators>()),
      kernels(device, context.images),
      states(device) {
  joinMonitor(context);
  try {
    if (verifies) verify(p, {ranks, options.verified_sizes});
    program = concretized(std::move(p), ranks);
    inlined = inlineCalls(program);
    plans = PlanCache(SizeInputs(inlined));
    communicates = communicatesAnywhere(inlined);
    // This must precede checkAgreement(), so that errors on all ranks can name instructions.
    if (monitor != nullptr) nameInstructions();
    std::lock_guard lock(order->running);
    const int64_t number = order->executables++;
    if (on_shared_monitor) monitor->activity().resume();  // before another rank may begin a run
    if (ranks > 1) checkAgreement(program, *world);
    if (ranks > 1) checkCompilers(program, device, *world);
    makeCommunicators();
    makeRunner(options.stream, number);
    if (on_shared_monitor) ++order->alive;  // nothing throws after this, so ~Impl() will run
  } catch (const std::exception& e) {
    failJob(e.what());
    throw;
  }
}

void Executable::Impl::joinMonitor(const Context& context) {
  if (ranks == 1) {
    order = std::make_shared<RunOrder>();
    return;
  }
  on_shared_monitor = context.monitor == nullptr;
  monitor = &jobMonitorOf(*world, context.monitor, context.monitor_options);
  order = runOrderOf(*monitor);
}

void Executable::Impl::makeRunner(const std::shared_ptr<SharedStream>& stream, int64_t number) {
  resources = std::make_shared<RunResources>(device, instructionTexts(inlined), stream);
  if (monitor != nullptr) resources->job.open(*world, *monitor, hash, number);
  matmuls = std::make_unique<AlgorithmAgreement>(
      world, communicates && hasMatmuls(inlined) && device.choosesAlgorithms());
  posts = std::make_unique<CrossRankMatcher>(world, communicates);
  evaluator = std::make_unique<HostIrEvaluator>(inlined, device, *communicators, kernels, *matmuls,
                                                rank, ranks);
}

void Executable::Impl::nameInstructions() {
  const std::string text = print(inlined);
  hash = boost::hash_range(text.begin(), text.end());
  monitor->addProgram(hash, instructionTexts(inlined));
}

void Executable::Impl::failJob(const char* reason) const noexcept {
  if (monitor == nullptr) return;
  monitor->fail(reason);
  world->interrupt(reason);
}

// In a job of one rank, this function creates a World whose transport supports this device.
void Executable::Impl::makeCommunicators() {
  if (!communicates) return;
  if (ranks == 1) own_worlds = makeInProcessWorldsFor(device.kind(), 1);
  communicators->add(inlined, ranks == 1 ? *own_worlds.front() : *world);
}

// After an exception on this rank, the other ranks may never take part in the latest runs of this
// rank. The destructor therefore fails the job if these runs do not end within kLongestUnwinding.
Executable::Impl::~Impl() {
  const bool thrown = std::uncaught_exceptions() > exceptions;
  if (thrown && communicates && monitor != nullptr &&
      (monitor->failed() || !states.endWithin(kLongestUnwinding))) {
    failJob("an exception unwound its Executable");
  }
  states.synchronize();
  if (resources) resources->job.close();
  std::lock_guard lock(order->running);
  if (order->latest && order->latest->resources == resources) order->latest.reset();
  // endRuns() notifies the other ranks, so that they do not wait for a next run of this rank.
  if (on_shared_monitor && --order->alive == 0 && !monitor->failed()) {
    monitor->activity().endRuns(thrown);
  }
}

std::shared_ptr<const Plan> Executable::Impl::planFor(const std::vector<Argument>& inputs,
                                                      const RunOptions& run_options,
                                                      Stream stream) {
  std::lock_guard lock(planning);
  std::shared_ptr<const Plan> plan = plans.find(inputs, run_options.preallocated);
  if (plan) return plan;
  HEDDLE_USER_CHECK(run_options.preallocated.size() <= inlined.outputs.size(),
                    "{} preallocated tensors for {} outputs", run_options.preallocated.size(),
                    inlined.outputs.size());
  resources->job.begin(comm::Activity::Compiling);
  const comm::World::Task task(world, comm::RankTask::PreparingRun);
  plan = evaluator->prepare(inputs, run_options.preallocated, verifies, stream);
  resources->job.end(comm::Activity::Compiling);
  if (!plan->references.empty()) reportReference(device);
  plans.add(inputs, run_options.preallocated, plan);
  ++plan_count;
  return plan;
}

Outputs Executable::Impl::run(const std::vector<Argument>& inputs, const RunOptions& run_options) {
  states.rethrowErrors();
  try {
    std::unique_lock<std::mutex> order_lock;
    if (communicates) order_lock = std::unique_lock(order->running);
    const std::shared_ptr<const Plan> plan = planFor(inputs, run_options, run_options.stream);
    if (run_options.stream != nullptr) return issue(plan, run_options.stream, inputs, run_options);
    SharedStream& shared = resources->stream();
    std::lock_guard lock(shared.issuing);
    return issue(plan, shared.get(), inputs, run_options);
  } catch (const std::exception& e) {
    failJob(e.what());
    throw;
  }
}

// Makes the stream wait for the latest communicating run, so that collectives of two runs on two
// streams keep their order on the device.
void Executable::Impl::waitForLatest(Stream stream) {
  if (!order->latest) return;
  if (&order->latest->resources->device() != &device) {
    ++order->chain;
    return;
  }
  if (order->latest_stream == stream && !differsPerThread(stream)) return;
  device.waitEvent(stream, order->latest->event);
}

Outputs Executable::Impl::issue(const std::shared_ptr<const Plan>& plan, Stream stream,
                                const std::vector<Argument>& inputs,
                                const RunOptions& run_options) {
  if (plan->communicates) waitForLatest(stream);
  RunState& state = states.take(stream);
  try {
    Outputs outputs = issueWith(state, plan, stream, inputs, run_options);
    if (plan->communicates) {
      order->latest = state.completion;
      order->latest_stream = stream;
    }
    states.giveBack(state);
    return outputs;
  } catch (...) {
    states.giveBack(state);
    throw;
  }
}

Outputs Executable::Impl::issueWith(RunState& state, const std::shared_ptr<const Plan>& plan,
                                    Stream stream, const std::vector<Argument>& inputs,
                                    const RunOptions& run_options) {
  state.completion = std::make_shared<Completion>(resources);
  state.completion->plan = plan;
  state.prepare(plan, stream);
  bindRun(*plan, inputs, run_options.preallocated, state);
  state.fault = faultOfRun(*plan);
  state.profile = run_options.profile;
  state.completion->observer = RunObserver(resources->job.status(), state.profile);
  if (state.profile != nullptr) state.profile->start(plan, resources->texts(), device);
  state.completion->run = resources->job.beginRun(plan->sizes_hash, communicates,
                                                  plan->communicates ? order->chain : 0);
  Allocator& allocator =
      run_options.allocator != nullptr ? *run_options.allocator : device.allocator();
  auto result = std::make_shared<RunResult>();
  try {
    posts->agree(*plan, *resources);
    evaluator->execute(*plan, state, allocator);
    result->completion = state.completion;
    result->values = takeOutputs(*plan, state, allocator, inputs, run_options.preallocated);
    device.recordEvent(state.completion->event, stream);
  } catch (...) {
    leaveFailed(state, stream);
    throw;
  }
  states.watch(state.completion);
  ++run_count;
  int64_t peak = peak_bytes.load();
  while (peak < state.peak_bytes && !peak_bytes.compare_exchange_weak(peak, state.peak_bytes)) {
  }
  return Outputs(std::move(result));
}

// Returns the fault for this run. Corrupt acts in every run, all other kinds only in the first run.
const InjectedFault* Executable::Impl::faultOfRun(const Plan& plan) {
  if (!inject) return nullptr;
  checkFault(*inject, plan, *resources);
  if (inject->kind != InjectedFault::Kind::Corrupt && injected.exchange(true)) return nullptr;
  return &*inject;
}

// Ends a run after issueWith() has failed. Work that was issued before the failure may still report
// errors. These errors count as reported, because the caller already gets the first error.
void Executable::Impl::leaveFailed(RunState& state, Stream stream) {
  state.completion->reported.store(true);
  try {
    device.recordEvent(state.completion->event, stream);
  } catch (const std::exception&) {
    state.completion->errors.report(std::current_exception(), -1);
  }
  states.watch(state.completion);
}

Executable::Executable(Program program, const Context& context, const ExecutableOptions& options)
    : impl_(std::make_unique<Impl>(std::move(program), context, options)) {}
Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;

const Program& Executable::program() const { return impl_->program; }

Outputs Executable::run(const std::vector<Argument>& inputs, const RunOptions& options) {
  return impl_->run(inputs, options);
}

Executable::Stats Executable::stats() const {
  Stats stats;
  stats.plans = impl_->plan_count.load();
  stats.runs = impl_->run_count.load();
  stats.peak_bytes = impl_->peak_bytes.load();
  stats.held_bytes = impl_->resources->held_bytes.load();
  stats.communicators = impl_->communicators->made();
  stats.communicator_seconds = impl_->communicators->seconds();
  return stats;
}

}  // namespace heddle::host
