#include "comm/mpi/mpi_thread.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "comm/mpi/element_type.h"
#include "comm/process/start_timeout.h"
#include "ir/base/check.h"
#include "ir/system/start_thread.h"

namespace heddle::comm::mpi {
namespace {

// After this number of polls without progress, the thread sleeps between polls. Otherwise a job
// with more ranks than cores would be slow, because waiting ranks would occupy the cores.
constexpr int kYields = 200;
constexpr auto kSleep = std::chrono::microseconds(50);
// Without work, the MPI thread still calls MPI at this interval. MPI may report a message as sent
// although some bytes are left, and sends these bytes only during a later call.
constexpr auto kIdlePoll = std::chrono::milliseconds(20);
// The exit code of mpirun after an abort. It equals the exit code of the heddle command after a
// failed job.
constexpr int kAbortCode = 2;

// Number of polls between two calls of the listeners (MpiThread::addListener) while there is
// submitted work.
constexpr int kPollsUnread = 64;
// If a program calls MPI_Finalize in a failed job, the other ranks have this time to report why
// they end.
constexpr auto kReportTime = std::chrono::seconds(1);

std::mutex running_mutex;
std::weak_ptr<MpiThread> running;     // the MPI thread of this process, guarded by running_mutex
std::atomic<bool> job_failed{false};  // an MPI thread of this process was interrupted

// MPI_Finalize calls this function before it waits for the other ranks. In a failed job, some
// ranks may never call MPI_Finalize, so the function ends the job. If the job has not failed, the
// function removes the listeners, because they call MPI, which is not allowed after MPI_Finalize.
int endFailedJob(MPI_Comm, int, void*, void*) {
  if (!job_failed) {
    MpiThread::removeListeners();
    return MPI_SUCCESS;
  }
  std::fputs("heddle: MPI_Finalize in a job that has failed: it ends by MPI_Abort\n", stderr);
  std::fflush(stderr);
  std::this_thread::sleep_for(kReportTime);
  return MPI_Abort(MPI_COMM_WORLD, kAbortCode);
}

// Installs endFailedJob() once per process, as the function that deletes an attribute of
// MPI_COMM_SELF. MPI_Finalize deletes the attributes of MPI_COMM_SELF before it does anything else.
void watchFinalize() {
  static int key = MPI_KEYVAL_INVALID;
  if (key != MPI_KEYVAL_INVALID) return;
  check("MPI_Comm_create_keyval",
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, endFailedJob, &key, nullptr));
  check("MPI_Comm_set_attr", MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr));
}

void checkThreadLevel(int provided, int needed) {
  HEDDLE_USER_CHECK(provided >= needed,
                    "MPI offers thread level {}, heddle needs {}: initialise it with "
                    "MPI_Init_thread and MPI_THREAD_MULTIPLE, or leave it to heddle",
                    provided, needed);
}

}  // namespace

void check(const char* call, int result) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  userError("{} failed: {}", call, std::string(text, static_cast<size_t>(length)));
}

bool isDone(MPI_Request& request) {
  int done = 0;
  check("MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  return done != 0;
}

std::shared_ptr<MpiThread> MpiThread::get() {
  std::lock_guard lock(running_mutex);
  std::shared_ptr<MpiThread> mpi_thread = running.lock();
  if (!mpi_thread) {
    mpi_thread = std::make_shared<MpiThread>();
    running = mpi_thread;
  }
  return mpi_thread;
}

void MpiThread::removeListeners() noexcept {
  std::shared_ptr<MpiThread> mpi_thread;
  {
    std::lock_guard lock(running_mutex);
    mpi_thread = running.lock();
  }
  if (!mpi_thread) return;
  try {
    mpi_thread->await([&] {
      mpi_thread->listeners_.clear();
      return true;
    });
  } catch (const std::exception&) {  // interrupted: the MPI thread calls no listener any more
  }
}

MpiThread::MpiThread() {
  std::promise<void> started;
  std::future<void> ready = started.get_future();
  thread_ = startThread("MPI", [this, &started] { run(started); });
  try {
    ready.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

MpiThread::~MpiThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void MpiThread::start() {
  // Messages of the failed job may still arrive, and MPI would write them to buffers that were
  // freed. Therefore this process must not make MPI calls again.
  HEDDLE_USER_CHECK(!job_failed,
                    "the job of this process has failed: start a new process for another job");
  int finalized = 0, initialized = 0, provided = 0;
  MPI_Finalized(&finalized);
  HEDDLE_USER_CHECK(!finalized, "MPI has been finalised in this process and cannot start again");
  MPI_Initialized(&initialized);
  if (initialized) {
    // Threads of the program may call MPI at the same time as the MPI thread, which requires
    // MPI_THREAD_MULTIPLE.
    check("MPI_Query_thread", MPI_Query_thread(&provided));
    checkThreadLevel(provided, MPI_THREAD_MULTIPLE);
    watchFinalize();
  } else {
    check("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    owns_mpi_ = true;
    checkThreadLevel(provided, MPI_THREAD_SERIALIZED);
  }
  int rank = -1;
  check("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  world_rank_ = rank;
}

void MpiThread::run(std::promise<void>& started) {
  try {
    start();
    started.set_value();
  } catch (...) {
    if (owns_mpi_) MPI_Finalize();
    started.set_exception(std::current_exception());
    return;
  }
  serve();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized || isInterrupted()) return;
  freeElementTypes();
  if (owns_mpi_) finalize();
}

// MPI_Finalize waits for all ranks and cannot be interrupted. After the time limit, this process
// therefore exits, and mpirun ends the other ranks.
void MpiThread::finalize() const {
  const StartTimeout limit(
      patience_.load(), nullptr, "the other ranks to call MPI_Finalize",
      [this](const std::string& text, int) {
        std::fprintf(stderr, "heddle: rank %d ends: %s\n", world_rank_.load(), text.c_str());
        std::fflush(stderr);
        std::_Exit(kAbortCode);
      },
      "the job has not ended");
  MPI_Finalize();
}

// Advances the submitted work in turn. Without work, waits until work is submitted, but calls MPI
// every kIdlePoll.
void MpiThread::serve() {
  int idle_polls = 0;
  while (true) {
    if (aborting_) MPI_Abort(MPI_COMM_WORLD, kAbortCode);
    callListeners();
    const bool more = takeSubmitted();
    const bool progress = advanceAll();
    idle_polls = more || progress ? 0 : idle_polls + 1;
    if (idle_polls == 0) continue;
    if (active_.empty()) {
      std::unique_lock lock(mutex_);
      if (!submitted_.empty() || aborting_) continue;
      if (stopping_) return;
      woken_.wait_for(lock, kIdlePoll);
      lock.unlock();
      if (isInterrupted()) continue;
      int flag = 0, finalized = 0;
      MPI_Finalized(&finalized);
      if (!finalized) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
      }
      continue;
    }
    pause(idle_polls);
  }
}

void MpiThread::callListeners() {
  if (!active_.empty() && ++polls_ % kPollsUnread != 0) return;
  for (const auto& [key, callback] : listeners_) {
    if (isInterrupted()) return;
    callback();
  }
}

void MpiThread::addListener(const void* key, std::function<void()> callback) {
  await([&] {
    listeners_.emplace(key, std::move(callback));
    return true;
  });
}

bool MpiThread::takeSubmitted() {
  std::lock_guard lock(mutex_);
  if (submitted_.empty()) return false;
  for (auto& work : submitted_) active_.push_back(std::move(work));
  submitted_.clear();
  return true;
}

// Calls all active work once. After interrupt(), drops the work that submit() added. Work that
// await() added is still called: its checkInterrupt() throws, and await() rethrows the exception.
bool MpiThread::advanceAll() {
  bool progress = false;
  for (auto work = active_.begin(); work != active_.end();) {
    const bool dropped = isInterrupted() && !work->awaited;
    if (dropped || work->step()) {
      work = active_.erase(work);
      progress = true;
    } else {
      ++work;
    }
  }
  return progress;
}

void MpiThread::pause(int idle_polls) {
  if (idle_polls < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kSleep);
  }
}

void MpiThread::add(Work work) {
  {
    std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(work));
  }
  woken_.notify_all();
}

void MpiThread::submit(std::function<bool()> work) { add({std::move(work), false}); }

void MpiThread::await(std::function<bool()> work) {
  std::promise<void> ended;
  std::future<void> result = ended.get_future();
  const auto step = [this, &work, &ended] {
    try {
      checkInterrupt();
      if (!work()) return false;
      ended.set_value();
    } catch (...) {
      ended.set_exception(std::current_exception());
    }
    return true;
  };
  add({step, true});
  result.get();
}

void MpiThread::abort(const std::string& reason) noexcept {
  if (aborting_.exchange(true)) return;
  std::fprintf(stderr, "heddle: rank %d: %s\n", world_rank_.load(), reason.c_str());
  std::fflush(stderr);
  woken_.notify_all();
}

void MpiThread::interrupt(const std::string& reason) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (interruption_.empty()) interruption_ = reason;
    interrupted_.store(true, std::memory_order_release);
    job_failed = true;
  }
  woken_.notify_all();
}

std::string MpiThread::interruption() const {
  std::lock_guard lock(mutex_);
  return interruption_;
}

void MpiThread::checkInterrupt() const {
  if (isInterrupted()) userError("{}", interruption());
}

}  // namespace heddle::comm::mpi
