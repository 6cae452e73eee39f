#pragma once

#include <memory>

namespace heddle::host {

class RunStatePool;  // host/run/run_state.h

// Releases the owners that runs keep (host/run/kept_owners.h) soon after the runs have ended. Calls
// of Outputs::wait() and later runs may release them earlier. A thread of the object polls the runs
// every few milliseconds, but only while runs keep owners. Thread-safe.
class OwnerReaper {
 public:
  OwnerReaper();
  ~OwnerReaper();
  OwnerReaper(const OwnerReaper&) = delete;
  OwnerReaper& operator=(const OwnerReaper&) = delete;

  // Makes the thread call pool.releaseEnded() every few milliseconds, until a call returns false.
  // The first call of serve() starts the thread. If the system cannot create the thread,
  // Outputs::wait() or a later run releases the owners.
  void serve(RunStatePool& pool) noexcept;
  // Makes the thread stop calling pool.releaseEnded(), and waits for a call that is in progress.
  // Call this before the pool is destroyed, without holding the pool's lock. The thread itself may
  // call forget(), because the release of an owner may destroy the pool; it then does not wait.
  void forget(const RunStatePool& pool) noexcept;

 private:
  struct State;
  static void poll(State& state);
  // The thread shares the state, because the thread itself may release the last reference to this
  // object.
  std::shared_ptr<State> state_;
};

}  // namespace heddle::host
