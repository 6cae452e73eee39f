#include "host/executable.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>

#include "host/executable_impl.h"
#include "host/job/worlds.h"
#include "host/peak_memory.h"
#include "host/plan/bind_inputs.h"
#include "host/program/teams.h"
#include "host/program/visit.h"
#include "host/run/bind_run.h"
#include "host/run/issue.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr std::chrono::seconds kLongestUnwinding{3};

Device& deviceOf(const Context& context) {
  constexpr const char* kWhy = "an Executable needs a device";
  if (context.device == nullptr && context.world != nullptr) context.world->fail(kWhy);
  HEDDLE_USER_CHECK(context.device != nullptr, "{}", kWhy);
  return *context.device;
}

}  // namespace

Executable::Impl::Impl(Program p, const Context& context, const ExecutableOptions& options,
                       const ExecutableParts& parts)
    : device(deviceOf(context)),
      world(context.world),
      rank(world == nullptr ? 0 : world->rank()),
      ranks(world == nullptr ? 1 : world->size()),
      verifies(options.verify),
      checks_numerics(options.check_numerics || checksNumericsByDefault()),
      choices(options.kernel_choices.empty() && !options.choices_only
                  ? std::nullopt
                  : std::optional(KernelChoices{options.kernel_choices, options.choices_only})),
      output_names(options.output_names),
      inject(options.inject && options.inject->rank == rank ? options.inject : std::nullopt),
      communicators(parts.communicators && ranks > 1 ? parts.communicators
                                                     : std::make_shared<Communicators>()),
      kernels(parts.kernels ? parts.kernels
                            : std::make_shared<KernelStore>(device, context.images,
                                                            options.caches.kernel_bytes)),
      states(device, ranks > 1) {
  joinMonitor(context, parts.monitor);
  try {
    if (verifies) verify(p, {ranks, options.verified_sizes});
    program = concretized(std::move(p), ranks);
    inlined = inlineCalls(program);
    plans = RunCache<std::shared_ptr<const Plan>>(
        SizeInputs(inlined), {options.caches.plans, options.caches.plan_bytes});
    planned = RunCache<int64_t>(SizeInputs(inlined), {std::numeric_limits<size_t>::max(), 0});
    HEDDLE_USER_CHECK(output_names.empty() || output_names.size() == inlined.outputs.size(),
                      "{} names for {} outputs", output_names.size(), inlined.outputs.size());
    communicates = communicatesAnywhere(inlined);
    if (output_names.empty()) {
      for (SlotId output : inlined.outputs) output_names.push_back(inlined.slots[output].name);
    }
    // nameInstructions() must precede checkAgreement(), so that errors on all ranks can name
    // instructions.
    if (monitor != nullptr) nameInstructions();
    std::lock_guard lock(order->running);
    const int64_t number = order->executables++;
    // An earlier Executable may have told the job monitor that this rank begins no more runs.
    // resume() revokes this. It must precede checkAgreement(), because another rank may begin a run
    // directly after checkAgreement().
    if (on_shared_monitor) monitor->activity().resume();
    if (ranks > 1) checkAgreement(program, *world);
    if (ranks > 1) checkCompilers(program, device, *world);
    makeCommunicators();
    makeRunner(parts.stream, number);
    if (on_shared_monitor) ++order->alive;  // nothing throws after this, so ~Impl() will run
  } catch (const std::exception&) {
    failJobAndRethrow(monitor, world);
  }
}

void Executable::Impl::joinMonitor(const Context& context, comm::JobMonitor* given) {
  // A job of one rank creates no monitor. It uses a given monitor, which then shows where the rank
  // is.
  if (ranks == 1 && (world == nullptr || given == nullptr)) {
    order = std::make_shared<RunOrder>();
    return;
  }
  on_shared_monitor = given == nullptr;
  monitor = &jobMonitorOf(*world, given, context.monitor_options);
  order = runOrderOf(*monitor);
}

void Executable::Impl::makeRunner(const std::shared_ptr<SharedStream>& stream, int64_t number) {
  resources = std::make_shared<RunResources>(device, instructionTexts(inlined), stream);
  resources->output_names = output_names;
  if (monitor != nullptr) resources->job.open(*world, *monitor, hash, number);
  algorithms = std::make_unique<AlgorithmAgreement>(
      world, communicates && hasTimedLibraryCalls(inlined) && device.choosesAlgorithms());
  posts = std::make_unique<CrossRankMatcher>(world, communicates);
  evaluator = std::make_unique<HostIrEvaluator>(inlined, device, *communicators, *kernels,
                                                *algorithms, rank, ranks, checks_numerics,
                                                choices ? &*choices : nullptr);
}

void Executable::Impl::nameInstructions() {
  const std::string text = print(inlined);
  hash = boost::hash_range(text.begin(), text.end());
  monitor->addProgram(hash, instructionTexts(inlined));
}

// In a job of one rank, this function creates a World whose transport supports this device.
void Executable::Impl::makeCommunicators() {
  if (!communicates) return;
  if (ranks == 1) own_worlds = makeInProcessWorldsFor(device.kind(), 1);
  communicators->add(inlined, ranks == 1 ? *own_worlds.front() : *world);
}

// The destructor waits for the runs of this rank. If it runs because of an exception, another rank
// may have thrown too, and may then never take part in these runs. The destructor therefore fails
// the job if the runs do not end within kLongestUnwinding.
Executable::Impl::~Impl() {
  const bool thrown = std::uncaught_exceptions() > exceptions;
  if (thrown && communicates && monitor != nullptr &&
      (monitor->failed() || !states.endWithin(kLongestUnwinding))) {
    failJob(monitor, world, "an exception unwound its Executable");
  }
  if (resources) resources->stream().reaper.forget(states);
  states.synchronize();
  if (resources) resources->job.close();
  // After a failure of the job, synchronize() may return before the work on the device has ended.
  // This work may still launch kernels, so the device keeps them loaded.
  if (monitor != nullptr && monitor->failed()) device.keep(kernels);
  std::lock_guard lock(order->running);
  if (order->latest && order->latest->resources == resources) order->latest.reset();
  // endRuns() notifies the other ranks, so that they do not wait for a next run of this rank.
  if (on_shared_monitor && --order->alive == 0 && !monitor->failed()) {
    monitor->activity().endRuns(thrown);
  }
}

Outputs Executable::Impl::run(const std::vector<Argument>& inputs, const RunOptions& run_options,
                              const std::shared_ptr<const Plan>& plan,
                              std::shared_ptr<const Plan>* found) {
  EndedRuns ended;  // destroyed after all locks have been released
  try {
    const CurrentDevice current(device);
    const std::unique_lock<std::mutex> order_lock = lockOrder(inputs, run_options, plan != nullptr);
    if (!plan) *found = planFor(inputs, run_options);
    const std::shared_ptr<const Plan>& used = plan ? plan : *found;
    if (run_options.stream != nullptr)
      return issue(used, run_options.stream, inputs, run_options, ended);
    SharedStream& shared = resources->stream();
    std::lock_guard lock(shared.issuing);
    return issue(used, shared.get(), inputs, run_options, ended);
  } catch (const std::exception&) {
    failJobAndRethrow(monitor, world);
  }
}

// Makes the stream wait for the latest communicating run, so that collectives of two runs on two
// streams keep their order on the device. A stream cannot wait for a run on another device. If the
// latest run was on another device, a new sequence of runs (RunOrder::chain) begins instead.
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
                                const std::vector<Argument>& inputs, const RunOptions& run_options,
                                EndedRuns& ended) {
  if (plan->communicates) waitForLatest(stream);
  RunState& state = states.take(resources, plan, stream, ended);
  try {
    Outputs outputs = issueWith(state, plan, stream, inputs, run_options);
    if (plan->communicates) {
      order->latest = state.completion;
      order->latest_stream = stream;
    }
    states.giveBack(state, ended);
    return outputs;
  } catch (...) {
    leaveFailed(state, stream);
    states.giveBack(state, ended);
    throw;
  }
}

// Issues a run. beginRun() comes before agree() and execute(), because both report to the job
// monitor where this run is.
Outputs Executable::Impl::issueWith(RunState& state, const std::shared_ptr<const Plan>& plan,
                                    Stream stream, const std::vector<Argument>& inputs,
                                    const RunOptions& run_options) {
  state.prepare(plan, stream);
  bindRun(*plan, inputs, run_options.preallocated, state);
  keepOwners(inputs, run_options.preallocated, *state.completion);
  state.fault = faultOfRun(*plan);
  state.profile = run_options.profile;
  state.completion->observer = RunObserver(resources->job.status(), state.profile);
  state.completion->numerics.reset();
  if (checks_numerics) state.completion->numerics = std::make_shared<NumericsRecord>(rank);
  if (state.profile != nullptr) state.profile->start(plan, resources->texts(), device);
  state.completion->run = resources->job.beginRun(plan->sizes_hash, communicates,
                                                  plan->communicates ? order->chain : 0);
  Allocator& allocator =
      run_options.allocator != nullptr ? *run_options.allocator : device.allocator();
  posts->agree(*plan, *resources);
  evaluator->execute(*plan, state, allocator);
  std::shared_ptr<RunResult> result =
      state.record->finish(state, allocator, inputs, run_options.preallocated);
  device.recordEvent(state.completion->event, stream);
  ++run_count;
  if (peak_bytes.load(std::memory_order_relaxed) < state.peak_bytes) {
    notePeak(state.peak_bytes, plan);
  }
  return Outputs(std::move(result));
}

void Executable::Impl::notePeak(int64_t bytes, const std::shared_ptr<const Plan>& plan) {
  std::lock_guard lock(largest_mutex);
  if (bytes <= peak_bytes.load()) return;
  peak_bytes.store(bytes);
  largest = plan;
}

// Returns the fault for this run, or nullptr. A fault of the kind Corrupt acts in every run. All
// other kinds act only in the first run.
const InjectedFault* Executable::Impl::faultOfRun(const Plan& plan) {
  if (!inject) return nullptr;
  checkFault(*inject, plan, *resources);
  if (inject->kind != InjectedFault::Kind::Corrupt && injected.exchange(true)) return nullptr;
  return &*inject;
}

// Keeps the memory of the caller's tensors until the run has ended. Throws if an input is an output
// of a failed run.
void Executable::Impl::keepOwners(const std::vector<Argument>& inputs,
                                  const std::vector<Tensor>& preallocated, Completion& completion) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&inputs[i]);
    if (tensor != nullptr) completion.owners.add(tensor->owner, static_cast<int>(i));
  }
  for (const Tensor& tensor : preallocated) completion.owners.add(tensor.owner, -1);
  completion.checkInputs();
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
}

void addCounts(const KernelStore& kernels, Executable::Stats& stats) {
  const KernelStore::Counts counts = kernels.counts();
  stats.kernel_texts += counts.texts;
  stats.compile_seconds += counts.compile_seconds;
  stats.kernels_reused += counts.reused;
  stats.kernels_compiled += counts.compiled;
  stats.kernels_loaded += counts.loaded;
  stats.kernels_unloaded += counts.unloaded;
  stats.kernel_bytes += counts.bytes;
}

Executable::Executable(Program program, const Context& context, const ExecutableOptions& options)
    : impl_(std::make_unique<Impl>(std::move(program), context, options, ExecutableParts())) {}
Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;

Executable ExecutableParts::make(Program program, const Context& context,
                                 const ExecutableOptions& options) const {
  return Executable(
      std::make_unique<Executable::Impl>(std::move(program), context, options, *this));
}

std::shared_ptr<RunResources> ExecutableParts::resourcesOf(const Executable& executable) {
  return executable.impl_->resources;
}

const Program& Executable::program() const { return impl_->program; }

Outputs Executable::run(const std::vector<Argument>& inputs, const RunOptions& options) {
  std::shared_ptr<const Plan> plan;
  return impl_->run(inputs, options, nullptr, &plan);
}

std::map<std::string, std::string> Executable::algorithmChoices() const {
  std::map<std::string, std::string> choices;
  for (const auto& [question, choice] : impl_->algorithms->all()) {
    choices[algorithmKey(question, impl_->device)] = std::string(kAlgorithm) + choice;
  }
  return choices;
}

Executable::Stats Executable::stats() const {
  Stats stats;
  stats.plans = impl_->plan_count.load();
  stats.plan_hits = impl_->plan_hits.load();
  {
    std::lock_guard lock(impl_->plans_mutex);
    stats.plan_evictions = impl_->plans.evictions();
  }
  stats.runs = impl_->run_count.load();
  std::shared_ptr<const Plan> largest;
  {
    std::lock_guard lock(impl_->largest_mutex);
    stats.peak_bytes = std::max<int64_t>(0, impl_->peak_bytes.load());
    largest = impl_->largest;
  }
  if (largest) stats.peak_bytes_without_reuse = peakWithoutReuse(impl_->inlined, *largest);
  stats.held_bytes = impl_->resources->held_bytes.load();
  stats.unreported_failures = impl_->resources->stream().unreported_failures.load();
  addCounts(*impl_->kernels, stats);
  stats.communicators = impl_->communicators->made();
  stats.communicator_seconds = impl_->communicators->seconds();
  return stats;
}

}  // namespace heddle::host
