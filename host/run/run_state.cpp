#include "host/run/run_state.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ir/base/error.h"

namespace heddle::host {

namespace {

void probe(const Plan& plan) {
  for (comm::Communicator* communicator : plan.stream_ordered) communicator->probe();
}

}  // namespace

void awaitEvent(Device& device, Event event, const Plan& plan) {
  if (plan.stream_ordered.empty()) return device.synchronize(event);
  // The first polls only yield, because a sleep would delay the end of a short run.
  constexpr int kYields = 2000;
  constexpr auto kPollingInterval = std::chrono::microseconds(20);
  for (int polls = 0; !device.eventDone(event); ++polls) {
    if (polls < kYields) {
      std::this_thread::yield();
      continue;
    }
    probe(plan);
    std::this_thread::sleep_for(kPollingInterval);
  }
  // The event also happens if a different call, for example in another thread, has aborted a
  // collective. The run has then failed, and probe() throws.
  probe(plan);
}

SharedStream::~SharedStream() {
  if (stream_ != nullptr) device_.destroyStream(stream_);
}

Stream SharedStream::get() {
  if (stream_ == nullptr) stream_ = device_.createStream();
  return stream_;
}

RunResources::RunResources(Device& device, std::vector<std::string> instruction_texts,
                           std::shared_ptr<SharedStream> stream)
    : device_(device), texts_(std::move(instruction_texts)), stream_(std::move(stream)) {
  if (!stream_) stream_ = std::make_shared<SharedStream>(device_);
}

RunResources::~RunResources() {
  for (Event event : free_events_) device_.destroyEvent(event);
}

std::string RunResources::text(InstructionIndex index) const {
  if (index < 0) return "the start or end of the run";
  if (static_cast<size_t>(index) >= texts_.size()) return fmt::format("instruction {}", index);
  return fmt::format("instruction {} ({})", index, texts_[static_cast<size_t>(index)]);
}

Event RunResources::takeEvent() {
  {
    std::lock_guard lock(mutex_);
    if (!free_events_.empty()) {
      Event event = free_events_.back();
      free_events_.pop_back();
      return event;
    }
  }
  return device_.createEvent();
}

void RunResources::giveEvent(Event event) {
  std::lock_guard lock(mutex_);
  free_events_.push_back(event);
}

bool Completion::done() {
  try {
    if (!resources->device().eventDone(event)) return false;
    if (!settled_.load()) {
      if (plan) probe(*plan);
      conclude();
    }
  } catch (const std::exception&) {
    errors.report(std::current_exception(), -1);
  }
  settled_.store(true);
  return true;
}

void Completion::wait() {
  try {
    if (!settled_.load()) waitForDevice();
  } catch (const std::exception&) {
    // A failure of the device becomes the error of the run. Every later wait() then throws it, and
    // rethrow() reports it to the job.
    errors.report(std::current_exception(), -1);
  }
  settled_.store(true);
  rethrow();
}

void Completion::waitForDevice() {
  Device& device = resources->device();
  if (!plan) return device.synchronize(event);
  const bool on_device = !plan->stream_ordered.empty();
  if (on_device) resources->job.begin(comm::Activity::Waiting);
  awaitEvent(device, event, *plan);
  if (on_device) resources->job.end(comm::Activity::Waiting);
  conclude();
}

void Completion::conclude() {
  // Collectives that wait on the device also complete if probe() has aborted them. A completed run
  // is therefore not always a successful run.
  if (plan && !plan->stream_ordered.empty() && resources->job.failed()) {
    throw UserError(resources->job.failure());
  }
  if (!errors.failed()) resources->job.endRun(run);
}

void Completion::rethrow() {
  if (!errors.failed()) return;
  reported.store(true);
  try {
    errors.rethrow(&resources->texts());
  } catch (const std::exception& e) {
    resources->job.fail(e.what());
    throw;
  }
}

RunState::~RunState() {
  for (Event event : events) device_.destroyEvent(event);
  for (StreamId id : streams.ids()) {
    if (id != kCallerStream) device_.destroyStream(streams[id]);
  }
}

void RunState::prepare(const std::shared_ptr<const Plan>& plan, Stream stream) {
  if (plan != plan_) {
    plan_ = plan;
    pointers.assign(plan->pointers(), nullptr);
    owned.assign(plan->buffers.size(), false);
    registers.assign(plan->registers, Scalar(int64_t{0}));
    args = plan->args;
    operations = plan->operations;
    counts.assign(static_cast<size_t>(plan->counts_size), 0);
    staging.assign(static_cast<size_t>(plan->staging_bytes), std::byte{0});
    if (streams.empty()) streams.push_back(nullptr);
    while (streams.size() < plan->streams) {
      // Communication gets urgent streams, because other ranks wait for it. All plans that use this
      // state are plans of one program, so they use the same streams for communication.
      streams.push_back(plan->communication_streams[streams.endId()] ? device_.createUrgentStream()
                                                                     : device_.createStream());
    }
    while (events.size() < plan->events) events.push_back(device_.createEvent());
  }
  streams[kCallerStream] = stream;
  held_bytes = 0;
  peak_bytes = 0;
}

RunState& RunStatePool::take(Stream stream) {
  std::lock_guard lock(mutex_);
  RunState* found = nullptr;
  for (const std::unique_ptr<RunState>& state : states_) {
    if (state->busy) continue;
    const bool same_stream =
        !differsPerThread(stream) && !state->streams.empty() && state->streams.front() == stream;
    if (!same_stream && state->completion && !state->completion->done()) continue;
    found = state.get();
    if (same_stream) break;
  }
  if (found == nullptr) {
    states_.push_back(std::make_unique<RunState>(device_));
    found = states_.back().get();
  }
  found->busy = true;
  return *found;
}

void RunStatePool::giveBack(RunState& state) {
  std::lock_guard lock(mutex_);
  state.busy = false;
}

void RunStatePool::watch(std::shared_ptr<Completion> completion) {
  std::lock_guard lock(mutex_);
  watched_.push_back(std::move(completion));
  while (watched_.size() > kUnqueried && watched_.front()->done() &&
         !watched_.front()->errors.failed()) {
    watched_.pop_front();
  }
}

void RunStatePool::rethrowErrors() {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < watched_.size();) {
    if (!watched_[i]->errors.failed() || !watched_[i]->done()) {
      ++i;
      continue;
    }
    const std::shared_ptr<Completion> completed = std::move(watched_[i]);
    watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!completed->reported.load()) completed->rethrow();
  }
}

bool RunStatePool::endWithin(std::chrono::milliseconds most) {
  std::lock_guard lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + most;
  const auto isDone = [](const std::shared_ptr<Completion>& run) { return run->done(); };
  while (!std::all_of(watched_.begin(), watched_.end(), isDone)) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void RunStatePool::synchronize() noexcept {
  std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Completion>& completion : watched_) {
    const bool was_reported = completion->reported.load();
    try {
      completion->wait();
    } catch (const std::exception& e) {
      if (was_reported) continue;
      std::fprintf(stderr, "heddle: a run failed and no caller waited for it: %s\n", e.what());
    }
  }
  watched_.clear();
}

}  // namespace heddle::host
