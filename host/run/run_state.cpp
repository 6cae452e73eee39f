#include "host/run/run_state.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "ir/base/error.h"

namespace heddle::host {

namespace {

// Returns whether one thread has issued both runs on one stream. Such runs complete in the order in
// which they began. If the later run has completed, the earlier run has completed too.
bool isOfOneOrder(const Completion& a, const Completion& b) {
  return a.stream == b.stream && a.thread == b.thread;
}

}  // namespace

RunState::~RunState() {
  freeCounters();
  for (Event event : events) device_.destroyEvent(event);
  for (StreamId id : streams.ids()) {
    if (id != kCallerStream) device_.destroyStream(streams[id]);
  }
}

std::byte* RunState::counters(StreamId stream) {
  while (counters_.size() <= stream.index()) counters_.push_back(nullptr);
  std::byte*& memory = counters_[stream];
  if (memory == nullptr) {
    constexpr int64_t kBytes = codegen::LaunchStage::kCounterBytes;
    auto* fresh = static_cast<std::byte*>(device_.allocator().allocate(kBytes, streams[stream]));
    try {
      device_.fill(fresh, 0, kBytes, streams[stream], {});
    } catch (...) {
      device_.allocator().deallocate(fresh, kBytes, streams[stream]);
      throw;
    }
    memory = fresh;
  }
  return memory;
}

// If the job has failed, work of the last run may still use the counters. They then stay allocated
// until the process ends. Completion::done() would not tell, because it is also true for a run of a
// failed job whose work has not ended.
void RunState::freeCounters() noexcept {
  try {
    if (completion && !device_.eventDone(completion->event)) return;
  } catch (const std::exception&) {
    return;  // the device has failed
  }
  for (std::byte* memory : counters_) {
    if (memory == nullptr) continue;
    device_.allocator().deallocate(memory, codegen::LaunchStage::kCounterBytes, nullptr);
  }
}

void RunState::prepare(const std::shared_ptr<const Plan>& plan, Stream stream) {
  if (plan != plan_) {
    plan_ = plan;
    apart_inputs.clear();
    apart_outputs.clear();
    pointers.assign(plan->pointers(), nullptr);
    late_offsets.assign(plan->late_pointers.size(), 0);
    owned.assign(plan->buffers.size(), false);
    registers.assign(plan->registers, Scalar(int64_t{0}));
    args = plan->args;
    operations = plan->operations;
    counts.assign(plan->counts_size, 0);
    staging.assign(plan->staging_bytes, std::byte{0});
    if (streams.empty()) streams.push_back(nullptr);
    while (streams.size() < plan->streams) {
      // Communication gets streams of high priority, because other ranks wait for it. All plans
      // that use this state belong to one program, so they use the same streams for communication.
      streams.push_back(plan->communication_streams[streams.endId()] ? device_.createUrgentStream()
                                                                     : device_.createStream());
    }
    while (events.size() < plan->events) events.push_back(device_.createEvent());
  }
  streams[kCallerStream] = stream;
  held_bytes = 0;
  peak_bytes = 0;
}

void RunState::setLatePointers(PointerIndex base) {
  std::byte* address = pointers[base];
  for (size_t i = 0; i < late_offsets.size(); ++i) {
    if (plan_->late_pointers[i].base != base) continue;
    pointers[plan_->latePointer(i)] = address == nullptr ? nullptr : address + late_offsets[i];
  }
}

RunState& RunStatePool::take(const std::shared_ptr<RunResources>& resources,
                             const std::shared_ptr<const Plan>& plan, Stream stream,
                             EndedRuns& ended) {
  if (in_job_) rethrowErrors(ended);
  std::lock_guard lock(mutex_);
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

void EndedRuns::release() noexcept {
  while (first_) {
    first_->owners.release();
    const std::shared_ptr<Completion> last = std::move(first_);
    first_ = std::move(last->next_ended);
  }
}

bool EndedRuns::removeFirst(std::vector<std::shared_ptr<void>>& owners) noexcept {
  if (!first_) return false;
  // The run leaves the list first, because moveTo() may release owners, which may call this
  // function again.
  const std::shared_ptr<Completion> run = std::move(first_);
  first_ = std::move(run->next_ended);
  run->owners.moveTo(owners);
  return true;
}

void RunStatePool::giveBack(RunState& state, EndedRuns& ended) {
  RunResources& resources = *state.completion->resources;
  bool reaps = false;
  {
    std::lock_guard lock(mutex_);
    state.busy = false;
    pending_.push_back(state.completion);
    // The run sets any_error when it fails. takeFailed() in another thread may have reset it while
    // this run was not pending yet.
    if (in_job_ && state.completion->errors.failed()) resources.any_error.store(true);
    reaps = !is_reaped_ && !state.completion->owners.empty();
    is_reaped_ = is_reaped_ || reaps;
    if (pending_.size() >= query_at_) {
      takeCompleted(ended);
      query_at_ = std::max(kUnqueried, pending_.size() + kUnqueried / 2);
    }
  }
  if (reaps) resources.stream().reaper.serve(*this);
}

// Moves completed runs from the first three quarters of `pending_` to `ended`. The function first
// queries the last of these runs. If it has not completed, the function does nothing. Otherwise the
// earlier runs of the same thread on the same stream have completed too. All other runs of the
// three quarters are checked with isDone(), because `pending_` is not in the order in which runs of
// several threads complete. Completed runs leave the list even if an earlier run on another stream
// has not completed, because their records keep plans alive. In a job of several ranks, failed runs
// stay for takeFailed().
void RunStatePool::takeCompleted(EndedRuns& ended) {
  const size_t last = pending_.size() - pending_.size() / 4 - 1;
  Completion& later = *pending_[last];
  if (!later.done()) return;
  unfinished_.clear();
  const auto takes = [&](std::shared_ptr<Completion>& run) {
    if (isOfOneOrder(*run, later)) {
      run->setDone();
    } else if (!isDone(*run)) {
      return false;
    }
    if (in_job_ && run->errors.failed()) return false;
    ended.add(std::move(run));
    return true;
  };
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(last) + 1;
  pending_.erase(std::remove_if(pending_.begin(), end, takes), end);
}

// Returns whether a run has completed. Queries the device for at most one unfinished run per thread
// and stream. If that run has not completed, the later runs of the same thread on the same stream
// have not completed either.
bool RunStatePool::isDone(Completion& run) {
  const bool waits =
      std::any_of(unfinished_.begin(), unfinished_.end(),
                  [&](const Completion* earlier) { return isOfOneOrder(*earlier, run); });
  if (waits) return false;
  if (run.done()) return true;
  unfinished_.push_back(&run);
  return false;
}

bool RunStatePool::takeEnded(EndedRuns& ended) {
  std::lock_guard lock(mutex_);
  unfinished_.clear();
  bool has_more = false;
  const auto takes = [&](std::shared_ptr<Completion>& run) {
    if (run->owners.empty()) return false;
    if (!isDone(*run) || (in_job_ && run->errors.failed())) {
      has_more = true;
      return false;
    }
    ended.add(std::move(run));
    return true;
  };
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(), takes), pending_.end());
  is_reaped_ = has_more;
  return has_more;
}

void RunStatePool::rethrowErrors(EndedRuns& ended) {
  while (const std::shared_ptr<Completion> failed = takeFailed()) {
    ended.add(failed);
    if (!failed->reported.load()) failed->rethrow();
  }
}

// Removes a pending run that has completed with an error, and returns it. Returns nullptr if there
// is none. While no run fails, the function only reads any_error.
std::shared_ptr<Completion> RunStatePool::takeFailed() {
  std::lock_guard lock(mutex_);
  if (pending_.empty()) return nullptr;
  std::atomic<bool>& any_error = pending_.front()->resources->any_error;
  if (!any_error.load(std::memory_order_acquire)) return nullptr;
  any_error.store(false);
  std::shared_ptr<Completion> found;
  for (auto run = pending_.begin(); run != pending_.end(); ++run) {
    if (!(*run)->errors.failed()) continue;
    any_error.store(true);
    if (!(*run)->done()) continue;
    found = std::move(*run);
    pending_.erase(run);
    break;
  }
  return found;
}

bool RunStatePool::endWithin(std::chrono::milliseconds most) {
  std::lock_guard lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + most;
  const auto isDone = [](const std::shared_ptr<Completion>& run) { return run->done(); };
  while (!std::all_of(pending_.begin(), pending_.end(), isDone)) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void RunStatePool::synchronize() noexcept {
  EndedRuns ended;
  {
    std::lock_guard lock(mutex_);
    for (std::shared_ptr<Completion>& run : pending_) ended.add(std::move(run));
    pending_.clear();
  }
  for (Completion* run = ended.first(); run != nullptr; run = run->next_ended.get()) {
    run->waitForEnd();
    run->reportUnwaited();
  }
}

}  // namespace heddle::host
