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

  // Makes the thread call pool.takeEnded() every few milliseconds, until a call returns false. The
  // thread releases the owners of the runs that the calls return. The first call of serve() starts
  // the thread. If the system cannot create the thread, Outputs::wait() or a later run releases the
  // owners.
  void serve(RunStatePool& pool) noexcept;
  // Makes the thread stop calling pool.takeEnded(). When forget() returns, the thread has released
  // all owners of the runs that it has taken from the pool. Call this before the pool is destroyed,
  // without holding the pool's lock. The release of an owner may destroy the pool, so the thread
  // itself may call forget().
  void forget(const RunStatePool& pool) noexcept;

 private:
  struct State;
  static void poll(State& state);
  // The thread shares the state, because the thread itself may release the last reference to this
  // object.
  std::shared_ptr<State> state_;
};

}  // namespace heddle::host
