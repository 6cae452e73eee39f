#pragma once

#include <memory>

namespace heddle::host {

class RunStatePool;  // host/run/run_state.h

// Releases the owners of inputs (host/run/kept_owners.h) soon after their runs have ended. Calls of
// Outputs::wait() and later runs may release them earlier. One thread polls every few milliseconds,
// but only while there are such owners. Thread-safe.
class OwnerReaper {
 public:
  OwnerReaper();
  ~OwnerReaper();
  OwnerReaper(const OwnerReaper&) = delete;
  OwnerReaper& operator=(const OwnerReaper&) = delete;

  // Calls pool.releaseEnded() again and again until it returns false. The first call of watch()
  // starts the thread. If the system refuses, the owners wait for a call that releases them.
  void watch(RunStatePool& pool) noexcept;
  // Ends the calls for a pool. Call this before the pool is destroyed, and without its lock.
  void forget(const RunStatePool& pool) noexcept;

 private:
  struct State;
  static void poll(State& state);
  // The thread may be the one that releases the last reference to this object, so it shares the
  // state.
  std::shared_ptr<State> state_;
};

}  // namespace heddle::host
