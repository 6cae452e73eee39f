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

// Once a process: a slow path must not be taken in silence, nor told a thousand times.
void sayReference() {
  static std::once_flag said;
  std::call_once(said, [] {
    std::fputs(
        "heddle: no C++ compiler here, kernels run through the slow reference evaluator; "
        "HEDDLE_CXX names one\n",
        stderr);
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
  void bindRun(const Plan& plan, RunState& state, const std::vector<Argument>& inputs,
               const RunOptions& run_options) const;
  void checkOverlap(const Plan& plan, const RunState& state) const;
  void joinMonitor(const Context& context);
  void makeRunner(const std::shared_ptr<SharedStream>& stream, int64_t number);
  uint64_t nameInstructions();
  // Peers must not wait for a rank that has thrown.
  void tellJob(const char* reason) const noexcept;
  const InjectedFault* faultOfRun(const Plan& plan);

  Program program;  // meshes of the job's size
  Program inlined;  // without Calls: what is executed
  Device& device;
  comm::World* world;
  int64_t rank = 0;
  int64_t ranks = 1;
  int exceptions = std::uncaught_exceptions();
  bool verifies;
  std::optional<InjectedFault> inject;  // of this rank
  std::atomic<bool> injected{false};
  comm::JobMonitor* monitor = nullptr;
  bool on_shared_monitor = false;  // that of the World
  uint64_t hash = 0;               // of the program, on the job monitor
  // Some rank's runs wait for others, so that all ranks count them: one that takes no part may
  // leave the job when it has begun as many.
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
    if (verifies) verify(p, {ranks, std::nullopt});
    program = concretized(std::move(p), ranks);
    inlined = inlineCalls(program);
    communicates = communicatesAnywhere(inlined);
    // Before ranks meet the next time: who runs can be named by all.
    if (monitor != nullptr) hash = nameInstructions();
    std::lock_guard lock(order->running);
    const int64_t number = order->executables++;
    if (on_shared_monitor) monitor->activity().resume();  // before a peer may run it
    if (ranks > 1) checkAgreement(program, *world);
    makeCommunicators();
    makeRunner(options.stream, number);
    if (on_shared_monitor) ++order->alive;  // the destructor is certain to follow
  } catch (const std::exception& e) {
    tellJob(e.what());
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

uint64_t Executable::Impl::nameInstructions() {
  const std::string text = print(inlined);
  const uint64_t of_program = boost::hash_range(text.begin(), text.end());
  monitor->addProgram(of_program, instructionTexts(inlined));
  return of_program;
}

void Executable::Impl::tellJob(const char* reason) const noexcept {
  if (monitor == nullptr) return;
  monitor->fail(reason);
  world->interrupt(reason);
}

// A team of one needs a transport that takes this device's memory, whatever the job's is.
void Executable::Impl::makeCommunicators() {
  if (!communicates) return;
  if (ranks == 1) own_worlds = makeInProcessWorldsFor(device.kind(), 1);
  communicators->add(inlined, ranks == 1 ? *own_worlds.front() : *world);
}

// An exception may keep this rank from what the peers of its runs wait for, before they come to
// those runs: they must not wait for each other.
Executable::Impl::~Impl() {
  const bool thrown = std::uncaught_exceptions() > exceptions;
  if (thrown && communicates && monitor != nullptr &&
      (monitor->failed() || !states.endWithin(kLongestUnwinding))) {
    tellJob("it left the job by an exception");
  }
  states.synchronize();
  if (resources) resources->job.close();
  std::lock_guard lock(order->running);
  if (order->latest && order->latest->resources == resources) order->latest.reset();
  // Peers must not wait for runs that nothing here could begin.
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
  plan = evaluator->prepare(inputs, preallocatedDescs(run_options.preallocated), verifies, stream);
  resources->job.end(comm::Activity::Compiling);
  if (!plan->references.empty()) sayReference();
  plans.add(inputs, run_options.preallocated, plan);
  ++plan_count;
  return plan;
}

Outputs Executable::Impl::run(const std::vector<Argument>& inputs, const RunOptions& run_options) {
  states.rethrowErrors();
  try {
    std::unique_lock<std::mutex> one_at_a_time;
    if (communicates) one_at_a_time = std::unique_lock(order->running);
    const std::shared_ptr<const Plan> plan = planFor(inputs, run_options, run_options.stream);
    if (run_options.stream != nullptr) return issue(plan, run_options.stream, inputs, run_options);
    SharedStream& shared = resources->stream();
    std::lock_guard lock(shared.issuing);
    return issue(plan, shared.get(), inputs, run_options);
  } catch (const std::exception& e) {
    tellJob(e.what());
    throw;
  }
}

// Collectives of two runs on two streams keep their order on the device too.
void Executable::Impl::waitForLatest(Stream stream) {
  if (!order->latest) return;
  if (&order->latest->resources->device() != &device) {
    ++order->chain;
    return;
  }
  if (order->latest_stream == stream && !standsForMany(stream)) return;
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
  bindRun(*plan, state, inputs, run_options);
  state.fault = faultOfRun(*plan);
  state.profile = run_options.profile;
  state.completion->observer = RunObserver(resources->job.status(), state.profile);
  if (state.profile != nullptr) state.profile->start(plan, resources->texts(), device);
  state.completion->run = resources->job.beginRun(plan->sizes_hash, communicates,
                                                  plan->communicates ? order->chain : 0);
  Allocator& allocator =
      run_options.allocator != nullptr ? *run_options.allocator : device.allocator();
  try {
    posts->agree(*plan, *resources);
    evaluator->execute(*plan, state, allocator);
  } catch (...) {
    leaveFailed(state, stream);
    throw;
  }
  auto result = std::make_shared<RunResult>();
  result->completion = state.completion;
  result->values = takeOutputs(*plan, state, allocator, inputs, run_options.preallocated);
  device.recordEvent(state.completion->event, stream);
  states.watch(state.completion);
  ++run_count;
  int64_t peak = peak_bytes.load();
  while (peak < state.peak_bytes && !peak_bytes.compare_exchange_weak(peak, state.peak_bytes)) {
  }
  return Outputs(std::move(result));
}

// What stops a rank happens once; what makes its results wrong, in every run.
const InjectedFault* Executable::Impl::faultOfRun(const Plan& plan) {
  if (!inject) return nullptr;
  checkFault(*inject, plan, *resources);
  if (inject->kind != InjectedFault::Kind::Corrupt && injected.exchange(true)) return nullptr;
  return &*inject;
}

// Work that was issued before the error still reports to the completion. That error is the one to
// tell: what the device says now is its consequence.
void Executable::Impl::leaveFailed(RunState& state, Stream stream) {
  state.completion->reported.store(true);
  try {
    device.recordEvent(state.completion->event, stream);
  } catch (const std::exception&) {
    state.completion->errors.report(std::current_exception(), -1);
  }
  states.watch(state.completion);
}

void Executable::Impl::bindRun(const Plan& plan, RunState& state,
                               const std::vector<Argument>& inputs,
                               const RunOptions& run_options) const {
  for (const Plan::BufferInput& input : plan.buffer_inputs) {
    const Tensor& tensor = std::get<Tensor>(inputs[static_cast<size_t>(input.input)]);
    const auto index = static_cast<size_t>(input.pointer);
    HEDDLE_USER_CHECK(tensor.data != nullptr || plan.buffers[index].bytes == 0,
                      "input {} (%{}) has no data", input.input, plan.buffers[index].name);
    state.pointers[index] = static_cast<std::byte*>(tensor.data);
  }
  for (const Plan::ValueInput& input : plan.value_inputs) {
    const Tensor& tensor = std::get<Tensor>(inputs[static_cast<size_t>(input.input)]);
    HEDDLE_USER_CHECK(tensor.data != nullptr, "input {} has no data", input.input);
    state.registers[static_cast<size_t>(input.out)] = loadElement(tensor.data, input.dtype, 0);
  }
  for (const Plan::ScalarInput& input : plan.scalar_inputs) {
    const auto position = static_cast<size_t>(input.input);
    const Scalar& value =
        position < inputs.size() ? std::get<Scalar>(inputs[position]) : input.default_value;
    state.registers[static_cast<size_t>(input.out)] = roundTo(input.dtype, value);
  }
  for (const Plan::Preallocated& output : plan.preallocated) {
    const Tensor& tensor = run_options.preallocated[static_cast<size_t>(output.output)];
    state.pointers[static_cast<size_t>(output.pointer)] = static_cast<std::byte*>(tensor.data);
  }
  checkOverlap(plan, state);
}

// The program may write an output before it has read the input, or another output, that lies there.
void Executable::Impl::checkOverlap(const Plan& plan, const RunState& state) const {
  for (const Plan::Preallocated& output : plan.preallocated) {
    const bool in_place = static_cast<size_t>(output.pointer) < plan.buffers.size();
    if (!in_place) continue;  // copied at the end, when the inputs have been read
    const auto index = static_cast<size_t>(output.pointer);
    const std::byte* begin = state.pointers[index];
    for (const Plan::Preallocated& earlier : plan.preallocated) {
      if (&earlier == &output) break;
      const auto other = static_cast<size_t>(earlier.pointer);
      if (other >= plan.buffers.size()) continue;
      HEDDLE_USER_CHECK(begin + plan.buffers[index].bytes <= state.pointers[other] ||
                            state.pointers[other] + plan.buffers[other].bytes <= begin,
                        "preallocated output {} lies on the memory of preallocated output {}",
                        output.output, earlier.output);
    }
    for (const Plan::BufferInput& input : plan.buffer_inputs) {
      const Buffer& buffer = plan.buffers[static_cast<size_t>(input.pointer)];
      const std::byte* other = state.pointers[static_cast<size_t>(input.pointer)];
      HEDDLE_USER_CHECK(begin + plan.buffers[index].bytes <= other || other + buffer.bytes <= begin,
                        "preallocated output {} lies on the memory of input {} (%{})",
                        output.output, input.input, buffer.name);
    }
  }
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
