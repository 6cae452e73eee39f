#include "host/run/run_state.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ir/base/error.h"

namespace heddle::host {

RunState::~RunState() {
  for (Event event : events) device_.destroyEvent(event);
  for (StreamId id : streams.ids()) {
    if (id != kCallerStream) device_.destroyStream(streams[id]);
  }
}

void RunState::prepare(const std::shared_ptr<const Plan>& plan, Stream stream) {
  if (plan != plan_) {
    plan_ = plan;
    apart_inputs.clear();
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

RunState& RunStatePool::take(const std::shared_ptr<RunResources>& resources,
                             const std::shared_ptr<const Plan>& plan, Stream stream) {
  std::lock_guard lock(mutex_);
  rethrowLocked();
  RunState& state = stateFor(stream);
  RunRecord& record = resources->takeRecord();
  state.completion = record.begin(resources, plan);
  state.completion->stream = stream;
  state.completion->thread = std::this_thread::get_id();
  state.record = &record;
  state.busy = true;
  return state;
}

RunState& RunStatePool::stateFor(Stream stream) {
  RunState* found = nullptr;
  for (const std::unique_ptr<RunState>& state : states_) {
    if (state->busy) continue;
    const bool same_stream =
        !differsPerThread(stream) && !state->streams.empty() && state->streams.front() == stream;
    if (same_stream) return *state;
    if (!state->completion || state->completion->done()) found = state.get();
  }
  if (found != nullptr) return *found;
  states_.push_back(std::make_unique<RunState>(device_));
  return *states_.back();
}

void RunStatePool::giveBack(RunState& state) {
  std::lock_guard lock(mutex_);
  state.busy = false;
  watched_.push_back(state.completion);
  // Another thread may have reset the flag while this run was not watched yet.
  if (state.completion->errors.failed()) state.completion->resources->any_error.store(true);
  if (watched_.size() < query_at_) return;
  forgetCompleted();
  query_at_ = std::max(kUnqueried, watched_.size() + kUnqueried / 2);
}

// Drops watched runs that have completed without an error. The runs that one thread issues on one
// stream complete in the order in which they began. A query for one of them therefore also answers
// for the earlier ones. Two threads may record the events of their runs in another order than that
// of `watched_`.
void RunStatePool::forgetCompleted() {
  const size_t last = watched_.size() - watched_.size() / 4 - 1;
  Completion& later = *watched_[last];
  if (!later.done()) return;
  size_t dropped = 0;
  for (; dropped <= last; ++dropped) {
    Completion& run = *watched_[dropped];
    const bool is_in_order = run.stream == later.stream && run.thread == later.thread;
    if (is_in_order) {
      run.setDone();
    } else if (!run.done()) {
      break;
    }
    if (run.errors.failed()) break;
  }
  watched_.erase(watched_.begin(), watched_.begin() + static_cast<std::ptrdiff_t>(dropped));
}

void RunStatePool::rethrowErrors() {
  std::lock_guard lock(mutex_);
  rethrowLocked();
}

// Repeated runs without an error only read one flag.
void RunStatePool::rethrowLocked() {
  if (watched_.empty()) return;
  std::atomic<bool>& any_error = watched_.front()->resources->any_error;
  if (!any_error.load(std::memory_order_acquire)) return;
  any_error.store(false);
  for (size_t i = 0; i < watched_.size();) {
    if (!watched_[i]->errors.failed() || !watched_[i]->done()) {
      if (watched_[i]->errors.failed()) any_error.store(true);
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
