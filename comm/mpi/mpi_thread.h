#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace heddle::comm::mpi {

// Throws UserError if `result` is not MPI_SUCCESS. The message has the name of the MPI call and the
// error text of MPI.
void check(const char* call, int result);

// Returns whether `request` has completed. Throws as check() does.
bool isDone(MPI_Request& request);

// Owns the MPI thread: the only thread on which heddle calls MPI. If heddle initialises MPI, it
// requests the thread level MPI_THREAD_SERIALIZED. If the program initialises MPI itself, its
// threads may also call MPI, so it must request the thread level MPI_THREAD_MULTIPLE. Thread-safe.
class MpiThread {
 public:
  // Returns the MPI thread of this process, and starts the thread if there is none. All Worlds
  // share the thread, because a process can initialise MPI only once. If heddle initialised MPI,
  // the destruction of the last reference finalises MPI. The start throws UserError if MPI has been
  // finalised or offers a lower thread level, if a call of MPI fails, or if interrupt() was called
  // earlier in this process.
  static std::shared_ptr<MpiThread> get();

  explicit MpiThread();
  ~MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  // Calls `work` on the MPI thread repeatedly until it returns true. The thread calls all
  // submitted work in turn, in the order in which it was submitted. `work` must not throw, must
  // not wait, and must not hold the last reference to this object.
  void submit(std::function<bool()> work);

  // Submits `work` as submit() does, and waits until `work` returns true or throws. Rethrows the
  // exception of `work`.
  void await(std::function<bool()> work);

  // Prints `heddle: rank R: reason` on the first call and makes the MPI thread call MPI_Abort. Does
  // not wait.
  void abort(const std::string& reason) noexcept;

  // Makes heddle stop using MPI after the job has failed. Does not wait.
  // - Submitted work is dropped. Every running or later await() throws UserError with `reason`.
  // - A second call does not change the reason.
  // - heddle does not finalise MPI. If the program has initialised MPI itself, its call of
  //   MPI_Finalize ends the job by MPI_Abort, because a rank that has failed may never call
  //   MPI_Finalize.
  void interrupt(const std::string& reason) noexcept;
  // Registers a function that the MPI thread calls again and again until removeListener(),
  // removeListeners() or interrupt() is called. `callback` must not wait for other ranks. `key`
  // identifies `callback` in removeListener(). Waits until the MPI thread has stored the function,
  // so do not call addListener() on the MPI thread.
  void addListener(const void* key, std::function<void()> callback);
  // Removes the function that was registered with `key`. Call it on the MPI thread.
  void removeListener(const void* key) { listeners_.erase(key); }
  // Removes all functions that were registered with addListener() in this process. After
  // removeListeners() has returned, none of these functions runs. Do not call removeListeners() on
  // the MPI thread.
  static void removeListeners() noexcept;
  // Limits the time for which MPI_Finalize may wait for other ranks, if heddle initialised MPI.
  // After `seconds` the process prints what it waits for, and ends. 0: no limit.
  void setPatience(double seconds) { patience_.store(seconds); }
  // Throws UserError if interrupt() was called.
  void checkInterrupt() const;
  std::string interruption() const;  // the reason; empty: not interrupted
  bool isInterrupted() const { return interrupted_.load(std::memory_order_acquire); }

 private:
  struct Work {
    std::function<bool()> step;
    bool awaited;
  };

  void run(std::promise<void>& started);
  void start();
  void serve();
  void finalize() const;
  bool takeSubmitted();
  bool advanceAll();
  void pause(int idle_polls);
  void callListeners();
  void add(Work work);

  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Work> submitted_;
  bool stopping_ = false;
  std::string interruption_;  // set before interrupted_ becomes true; then constant
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> aborting_{false};
  std::atomic<double> patience_{600};  // seconds; the default of JobMonitorOptions::patience

  // Only the MPI thread uses the members from here to owns_mpi_.
  std::list<Work> active_;
  std::map<const void*, std::function<void()>> listeners_;
  unsigned polls_ = 0;
  bool owns_mpi_ = false;
  std::atomic<int> world_rank_{-1};

  std::thread thread_;
};

}  // namespace heddle::comm::mpi
