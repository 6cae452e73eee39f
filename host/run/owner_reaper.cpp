#include "host/run/owner_reaper.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "host/run/run_state.h"
#include "ir/system/start_thread.h"

namespace heddle::host {
namespace {

// The time between two polls. The memory of an input stays alive for up to about this time after
// its run has ended. A query of a GPU takes about a microsecond, so polls cost almost nothing.
constexpr std::chrono::milliseconds kInterval{2};

}  // namespace

struct OwnerReaper::State {
  std::mutex mutex;  // guards all members except `ended` and `owners`
  std::condition_variable changed;
  std::vector<RunStatePool*> pools;
  RunStatePool* current = nullptr;  // the pool that the thread is calling
  bool stop = false;
  std::thread thread;
  // The runs whose owners the thread releases, and the owners of the run before them. Only the
  // thread accesses these two lists, without the mutex.
  EndedRuns ended;
  std::vector<std::shared_ptr<void>> owners;

  // Releases all runs and owners. Each run is released before its owners: the release of an owner
  // may destroy the Executable, and then the device, which a run needs. It may also call this
  // function again. Runs whose turn has not come keep their owners, so that Outputs::wait() can
  // release them.
  void releaseAll() noexcept {
    do {
      while (!owners.empty()) {
        const std::shared_ptr<void> owner = std::move(owners.back());
        owners.pop_back();
      }
    } while (ended.removeFirst(owners));
  }
};

OwnerReaper::OwnerReaper() : state_(std::make_shared<State>()) {}

OwnerReaper::~OwnerReaper() {
  std::thread thread;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
    thread = std::move(state_->thread);
  }
  state_->changed.notify_all();
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

void OwnerReaper::serve(RunStatePool& pool) noexcept {
  std::lock_guard lock(state_->mutex);
  try {
    state_->pools.push_back(&pool);
    if (!state_->thread.joinable()) {
      state_->thread = startThread("the memory of inputs", [state = state_] { poll(*state); });
    }
  } catch (const std::exception&) {
    std::erase(state_->pools, &pool);
    return;
  }
  state_->changed.notify_all();
}

// If the thread itself calls forget(), it is releasing an owner. It then releases all other runs
// and owners first, because the caller may destroy the device afterwards, which they may need.
void OwnerReaper::forget(const RunStatePool& pool) noexcept {
  std::unique_lock lock(state_->mutex);
  if (state_->thread.get_id() == std::this_thread::get_id()) {
    lock.unlock();
    state_->releaseAll();
    lock.lock();
  } else {
    state_->changed.wait(lock, [&] { return state_->current != &pool; });
  }
  std::erase(state_->pools, &pool);
  if (state_->current == &pool) state_->current = nullptr;
}

void OwnerReaper::poll(State& state) {
  std::unique_lock lock(state.mutex);
  while (!state.stop) {
    if (state.pools.empty()) {
      state.changed.wait(lock, [&] { return state.stop || !state.pools.empty(); });
    }
    state.changed.wait_for(lock, kInterval, [&] { return state.stop; });
    for (size_t left = state.pools.size(); left > 0 && !state.stop && !state.pools.empty();
         --left) {
      RunStatePool* const pool = state.pools.front();
      state.pools.erase(state.pools.begin());
      state.current = pool;
      lock.unlock();
      const bool has_more = pool->takeEnded(state.ended);
      state.releaseAll();
      lock.lock();
      // If an owner has destroyed the pool, forget() has reset `current`.
      if (has_more && state.current == pool) state.pools.push_back(pool);
      state.current = nullptr;
      state.changed.notify_all();
    }
  }
}

}  // namespace heddle::host
