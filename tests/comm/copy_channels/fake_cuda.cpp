// Implements the functions of the CUDA runtime that copy channels use, on host memory. A stream is
// a thread that sleeps now and then, so that ranks proceed at different speeds. Programs that link
// this file need no GPU.
#include "tests/comm/copy_channels/fake_cuda.h"

#include <cuda.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace heddle::comm::fake {
namespace {

class Stream {
 public:
  explicit Stream(unsigned seed) : random_(seed), thread_([this] { serve(); }) {}
  ~Stream() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void push(std::function<void()> work) {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      ++pushed_;
    }
    changed_.notify_all();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    const int64_t upto = pushed_;
    changed_.wait(lock, [&] { return done_ >= upto; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (random_() % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
      }
      work();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  int64_t pushed_ = 0, done_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

// An event. latest() is the flag that is set when the stream has reached the latest record of the
// event.
struct Event {
  std::mutex mutex;
  std::shared_ptr<std::atomic<bool>> happened = std::make_shared<std::atomic<bool>>(true);
  std::shared_ptr<std::atomic<bool>> latest() {
    std::lock_guard lock(mutex);
    return happened;
  }
};

// Waits for `done`. Sleeps after some yields, because many streams may wait for each other on only
// two cores.
template <class Done>
void waitUntil(const Done& done) {
  constexpr int kYields = 20;
  constexpr auto kNap = std::chrono::microseconds(50);
  for (int half = 0; !done(); ++half) {
    if (half < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

struct Block {
  size_t bytes = 0;
  int opened = 0;
};
struct Memory {
  std::mutex mutex;
  std::map<void*, Block> blocks;
  Counts counts;
};
Memory& memory() {
  static Memory all;
  return all;
}

std::atomic<bool> nothing_moves{false};
thread_local int process = 0;
thread_local int access_left = -1;
thread_local int copies_left = -1;

bool copyFails() {
  if (copies_left < 0) return false;
  return copies_left-- == 0;
}
bool hasAccess() {
  if (access_left <= 0) return access_left < 0;
  --access_left;
  return true;
}

Stream& streamOf(cudaStream_t stream) {
  static Stream rest(0);
  const bool is_own =
      stream != nullptr && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
  return is_own ? *reinterpret_cast<Stream*>(stream) : rest;
}
Event& eventOf(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

void memOp(const CUstreamBatchMemOpParams& op) {
  if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
    reinterpret_cast<std::atomic<uint32_t>*>(op.writeValue.address)->store(op.writeValue.value);
    return;
  }
  const auto* flag = reinterpret_cast<std::atomic<uint32_t>*>(op.waitValue.address);
  waitUntil([&] { return static_cast<int32_t>(flag->load() - op.waitValue.value) >= 0; });
}

CUresult batchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* ops, unsigned) {
  std::vector<CUstreamBatchMemOpParams> all(ops, ops + count);
  streamOf(reinterpret_cast<cudaStream_t>(stream)).push([all = std::move(all)] {
    for (const CUstreamBatchMemOpParams& op : all) memOp(op);
  });
  return CUDA_SUCCESS;
}

}  // namespace

void launch(cudaStream_t stream, std::function<void()> work) {
  streamOf(stream).push(std::move(work));
}

void setVoid(bool is_void) { nothing_moves.store(is_void); }
bool isVoid() { return nothing_moves.load(); }
void setProcess(int number) { process = number; }
void failAccessAfter(int peers) { access_left = peers; }
void failCopyAfter(int copies) { copies_left = copies; }

Counts counts() {
  std::lock_guard lock(memory().mutex);
  return memory().counts;
}
void count(const std::function<void(Counts&)>& change) {
  std::lock_guard lock(memory().mutex);
  change(memory().counts);
}

}  // namespace heddle::comm::fake

using namespace heddle::comm::fake;

extern "C" {
pid_t getpid() noexcept {
  constexpr int kApart = 10'000'000;  // larger than any process number
  return static_cast<pid_t>(syscall(SYS_getpid)) + process * kApart;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 16;
  return cudaSuccess;
}
// Uses mmap, so that large blocks take no memory before they are used. Fills the last bytes with
// garbage, because cudaMalloc does not clear memory.
cudaError_t cudaMalloc(void** data, size_t bytes) {
  constexpr size_t kDirty = 256;
  *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*data == MAP_FAILED) return cudaErrorMemoryAllocation;
  std::memset(static_cast<std::byte*>(*data) + bytes - std::min(bytes, kDirty), 0x5a,
              std::min(bytes, kDirty));
  std::lock_guard lock(memory().mutex);
  memory().blocks[*data] = {bytes, 0};
  ++memory().counts.blocks;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(data);
  if (found == memory().blocks.end()) return cudaErrorInvalidValue;
  if (found->second.opened > 0) ++memory().counts.freed_open;
  munmap(data, found->second.bytes);
  memory().blocks.erase(found);
  --memory().counts.blocks;
  return cudaSuccess;
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  static std::atomic<unsigned> made{0};
  *stream = reinterpret_cast<cudaStream_t>(new Stream(++made));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<Stream*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  streamOf(stream).synchronize();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &eventOf(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto happened = std::make_shared<std::atomic<bool>>(false);
  {
    std::lock_guard lock(eventOf(event).mutex);
    eventOf(event).happened = happened;
  }
  streamOf(stream).push([happened] { happened->store(true); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return eventOf(event).latest()->load() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  streamOf(stream).push(
      [happened = eventOf(event).latest()] { waitUntil([&] { return happened->load(); }); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (copyFails()) return cudaErrorInvalidValue;
  streamOf(stream).push([=] {
    if (!isVoid()) std::memcpy(to, from, bytes);
  });
  return cudaSuccess;
}
#if CUDART_VERSION >= 13000
// Executes the copies in reverse order, because CUDA guarantees no order.
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* bytes,
                                 size_t count, cudaMemcpyAttributes*, size_t*, size_t,
                                 cudaStream_t stream) {
  for (size_t i = count; i-- > 0;) {
    const cudaError_t status = cudaMemcpyAsync(to[i], from[i], bytes[i], {}, stream);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}
#endif
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* data) {
  std::memcpy(handle, &data, sizeof data);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t handle, unsigned) {
  if (!hasAccess()) return cudaErrorPeerAccessUnsupported;
  std::memcpy(data, &handle, sizeof *data);
  std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(*data);
  if (found == memory().blocks.end()) return cudaErrorInvalidValue;
  ++found->second.opened;
  ++memory().counts.opened;
  return cudaSuccess;
}
// Sleeps, because unmapping takes time on a GPU. Each rank sleeps for a different time, so ranks
// close their handles in different orders.
cudaError_t cudaIpcCloseMemHandle(void* data) {
  std::this_thread::sleep_for(std::chrono::milliseconds(3 * process * process));
  std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(data);
  if (found == memory().blocks.end() || found->second.opened == 0) return cudaErrorInvalidValue;
  --found->second.opened;
  --memory().counts.opened;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = hasAccess() ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "of the fake runtime"; }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** entry, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* state) {
  *entry = reinterpret_cast<void*>(&batchMemOp);
  *state = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}
