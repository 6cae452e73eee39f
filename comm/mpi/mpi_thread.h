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

// Throws UserError with the name of the MPI call and MPI's text unless `result` is MPI_SUCCESS.
void check(const char* call, int result);

// Whether `request` is complete; throws as check() does.
bool isDone(MPI_Request& request);

// Owns the one thread that calls MPI after start-up, so MPI_THREAD_SERIALIZED is enough when we
// initialise it. Thread-safe.
class MpiThread {
 public:
  // The mpi_thread of this process, started if there is none: MPI exists once a process, so all
  // worlds share it. MPI is finalised with the last reference if it was initialised here; it cannot
  // be started again after that, nor after an interrupt (UserError).
  static std::shared_ptr<MpiThread> get();

  explicit MpiThread();
  ~MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  // Calls `work` on the MPI thread again and again, in turn with all other work, until it answers
  // true. First calls are in the order of submission. It must neither throw nor wait, nor hold the
  // last reference to the mpi_thread.
  void submit(std::function<bool()> work);

  // The same, and waits for it. Rethrows what `work` throws, which ends it.
  void await(std::function<bool()> work);

  // Prints `heddle: rank R: reason` once and has the MPI thread call MPI_Abort. Does not wait.
  void abort(const std::string& reason) noexcept;

  // No more calls of MPI, its finalisation included (where the program finalises MPI itself, that
  // ends the process by MPI_Abort: peers that have failed too may never come there): work that was
  // submitted is dropped, await() throws UserError with `reason`. The first reason stays. Does not
  // wait.
  void interrupt(const std::string& reason) noexcept;
  // Called now and then on the MPI thread until forget() or an interrupt; it does not wait. `key`
  // tells it from others.
  void listen(const void* key, std::function<void()> look);
  // On the MPI thread.
  void forget(const void* key) { listeners_.erase(key); }
  // No listener of this process is called behind this. Not on the MPI thread.
  static void endListening() noexcept;
  // Throws when there was an interrupt.
  void checkInterrupt() const;
  std::string interruption() const;  // its reason, or nothing
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
  void rest(int idle_turns);
  void listenToAll();
  void add(Work work);

  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Work> submitted_;
  bool stopping_ = false;
  std::string interruption_;  // before interrupted_
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> aborting_{false};

  // The MPI thread's own.
  std::list<Work> active_;
  std::map<const void*, std::function<void()>> listeners_;
  unsigned turns_ = 0;
  bool owns_mpi_ = false;
  std::atomic<int> world_rank_{-1};

  std::thread thread_;
};

}  // namespace heddle::comm::mpi
