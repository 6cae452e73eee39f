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

// Throws UserError with the name of the MPI call and the text of MPI unless `result` is
// MPI_SUCCESS.
void check(const char* call, int result);

// Returns whether `request` has completed. Throws as check() does.
bool isDone(MPI_Request& request);

// Owns the one thread that calls MPI after initialisation. So MPI_THREAD_SERIALIZED is sufficient
// if heddle initialises MPI. Thread-safe.
class MpiThread {
 public:
  // Returns the MPI thread of this process and starts it if there is none. A process initialises
  // MPI once, so all Worlds share the thread. The last reference finalises MPI if heddle
  // initialised it. Throws UserError if MPI was finalised, or after an interrupt.
  static std::shared_ptr<MpiThread> get();

  explicit MpiThread();
  ~MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  // Calls `work` on the MPI thread repeatedly, alternating with all other work, until it returns
  // true. First calls are in the order of submission. `work` must neither throw nor wait, nor hold
  // the last reference to this object.
  void submit(std::function<bool()> work);

  // Does the same and waits for the end. Rethrows what `work` throws, which ends it.
  void await(std::function<bool()> work);

  // Prints `heddle: rank R: reason` once and makes the MPI thread call MPI_Abort. Does not wait.
  void abort(const std::string& reason) noexcept;

  // Ends all use of MPI, including its finalisation: drops submitted work, and await() throws
  // UserError with `reason`. Keeps the first reason. Does not wait. If the program finalises MPI
  // itself, that ends the process by MPI_Abort, because other ranks that have failed may never
  // reach MPI_Finalize.
  void interrupt(const std::string& reason) noexcept;
  // Registers a function that the MPI thread calls from time to time, until removeListener() or an
  // interrupt. The function must not wait. `key` identifies it.
  void addListener(const void* key, std::function<void()> callback);
  // Call it on the MPI thread.
  void removeListener(const void* key) { listeners_.erase(key); }
  // Removes all listeners of this process. After the return none is called. Do not call it on the
  // MPI thread.
  static void removeListeners() noexcept;
  // Throws UserError if there was an interrupt.
  void checkInterrupt() const;
  std::string interruption() const;  // empty: none
  bool isInterrupted() const { return interrupted_.load(std::memory_order_acquire); }

 private:
  struct Work {
    std::function<bool()> step;
    bool awaited;
  };

  void run(std::promise<void>& started);
  void start();
  void serve();
  bool takeSubmitted();
  bool advanceAll();
  void pause(int idle_polls);
  void callListeners();
  void add(Work work);

  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Work> submitted_;
  bool stopping_ = false;
  std::string interruption_;  // written before interrupted_
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> aborting_{false};

  // Only the MPI thread uses these.
  std::list<Work> active_;
  std::map<const void*, std::function<void()>> listeners_;
  unsigned polls_ = 0;
  bool owns_mpi_ = false;
  std::atomic<int> world_rank_{-1};

  std::thread thread_;
};

}  // namespace heddle::comm::mpi
