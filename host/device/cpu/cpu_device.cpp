#include "host/device/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>

#include "codegen/compile/cpp_compiler.h"
#include "codegen/compile/load_library.h"
#include "host/device/cpu/adversarial_scheduler.h"
#include "host/device/cpu/cpu_allocator.h"
#include "host/device/cpu/cpu_communicate.h"
#include "host/device/cpu/cpu_library.h"
#include "host/device/cpu/cpu_matmul.h"
#include "host/device/cpu/cpu_stream.h"
#include "host/device/cpu/tile_pool.h"
#include "ir/base/check.h"
#include "ir/system/usable_cpus.h"

namespace heddle::host {
namespace {

template <class Work>
class WorkTask : public TaskBody {
 public:
  explicit WorkTask(Work work) : work_(std::move(work)) {}
  bool poll() override {
    work_();
    return true;
  }

 private:
  Work work_;
};

template <class Work>
void enqueueWork(CpuStream& stream, const Issue& issue, Work work) {
  stream.enqueue<WorkTask<Work>>(issue, std::move(work));
}

class LaunchTask : public TaskBody {
 public:
  LaunchTask(TilePool& pool, CpuKernelFunction function, std::vector<std::byte> args, int64_t tiles,
             CpuStream& stream)
      : pool_(pool), function_(function), args_(std::move(args)), tiles_(tiles), stream_(stream) {}
  ~LaunchTask() override { stream_.recycle(std::move(args_)); }
  bool poll() override {
    pool_.run(function_, args_.data(), tiles_);
    return true;
  }

 private:
  TilePool& pool_;
  CpuKernelFunction function_;
  std::vector<std::byte> args_;
  int64_t tiles_;
  CpuStream& stream_;
};

// A task that begins once a point of another stream is passed (waitsFor()), and then does nothing.
// It delays the later tasks of its stream.
class WaitTask : public TaskBody {
 public:
  explicit WaitTask(const StreamPoint& point) : point_(point) {}
  bool poll() override { return true; }
  StreamPoint waitsFor() const override { return point_; }

 private:
  StreamPoint point_;
};

// Holds the stream point of the latest recordEvent(). Recording an event enqueues no task.
struct CpuEvent {
  std::mutex mutex;
  StreamPoint point;
  StreamPoint get() {
    std::lock_guard lock(mutex);
    return point;
  }
};

struct CpuKernel {
  std::shared_ptr<void> library;
  CpuKernelFunction function = nullptr;
};

// Owns the streams of a device. Does not delete a destroyed stream, because a StreamPoint may refer
// to it. A later createStream() returns this stream again.
class CpuStreams : public StreamTable {
 public:
  explicit CpuStreams(std::optional<uint64_t> seed) {
    if (seed) scheduler_ = std::make_unique<AdversarialScheduler>(*seed);
  }
  ~CpuStreams() override {
    for (const auto& stream : all_) waitFor(stream->end());
    scheduler_.reset();
  }

  CpuStream& stream(Stream handle) override {
    if (handle != nullptr) return *static_cast<CpuStream*>(handle);
    std::lock_guard lock(mutex_);
    if (default_ == nullptr) default_ = &make();
    return *default_;
  }
  Stream create() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return &make();
    CpuStream* stream = idle_.back();
    idle_.pop_back();
    return stream;
  }
  void destroy(Stream handle) {
    if (handle == nullptr) return;
    auto* stream = static_cast<CpuStream*>(handle);
    waitFor(stream->end());
    std::lock_guard lock(mutex_);
    idle_.push_back(stream);
  }
  static void waitFor(const StreamPoint& point) {
    if (point.stream != nullptr) point.stream->wait(point.tasks);
  }
  // Notifies the scheduler that a host thread polls, or that another rank may wait for this rank.
  void hurry() {
    if (scheduler_) scheduler_->hurry();
  }

 private:
  CpuStream& make() {
    all_.push_back(std::make_unique<CpuStream>(scheduler_.get()));
    if (scheduler_) scheduler_->add(*all_.back());
    return *all_.back();
  }

  std::mutex mutex_;
  std::unique_ptr<AdversarialScheduler> scheduler_;
  std::vector<std::unique_ptr<CpuStream>> all_;
  std::vector<CpuStream*> idle_;
  CpuStream* default_ = nullptr;
};

int threadsOf(const CpuOptions& options) {
  if (options.threads > 0) return options.threads;
  return usableCpus();
}

// Returns the name of the widest vector instruction set that this CPU has, of those that heddle
// knows.
const char* vectorUnit() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  return "sse2";
#else
  return "generic";
#endif
}

class CpuPreparedMatmul : public PreparedMatmul {
 public:
  CpuPreparedMatmul(CpuStreams& streams, TilePool& pool, MatmulShape shape,
                    const matmul::MatmulLibrary* library)
      : streams_(streams), pool_(pool), matmul_(std::move(shape), library, pool.threads()) {}
  int64_t workspaceBytes() const override { return matmul_.workspaceBytes(); }
  void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const override {
    enqueueWork(streams_.stream(stream), issue, [this, operands] { matmul_.run(operands, pool_); });
  }

 private:
  CpuStreams& streams_;
  TilePool& pool_;
  CpuMatmul matmul_;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : seed_(options.adversarial_seed),
        matmul_library_(matmul::matmulLibrary(options.matmul)),
        pool_(threadsOf(options)),
        streams_holder_(std::make_unique<CpuStreams>(options.adversarial_seed)),
        streams_(*streams_holder_),
        allocator_(streams_, options.memory_limit, options.adversarial_seed.has_value()) {}

  // The streams are destroyed first, because their tasks use the other members.
  ~CpuDevice() override { streams_holder_.reset(); }

  DeviceKind kind() const override { return DeviceKind::Cpu; }
  std::string description() const override {
    const std::string order = seed_ ? fmt::format(", adversarial order, seed {}", *seed_) : "";
    const std::string library =
        matmul_library_ == nullptr ? openBlasVersion() : "oneDNN " + matmul_library_->version();
    return fmt::format("cpu ({} threads, {}, {}{})", pool_.threads(), vectorUnit(), library, order);
  }
  Allocator& allocator() override { return allocator_; }

  Stream createStream() override { return streams_.create(); }
  void destroyStream(Stream stream) noexcept override { streams_.destroy(stream); }
  Event createEvent() override { return new CpuEvent; }
  void destroyEvent(Event event) noexcept override { delete static_cast<CpuEvent*>(event); }
  void recordEvent(Event event, Stream stream) override {
    const StreamPoint point = streams_.stream(stream).end();
    auto* recorded = static_cast<CpuEvent*>(event);
    std::lock_guard lock(recorded->mutex);
    recorded->point = point;
  }
  void waitEvent(Stream stream, Event event) override {
    const StreamPoint point = static_cast<CpuEvent*>(event)->get();
    CpuStream& waiting = streams_.stream(stream);
    if (point.passed() || point.stream == &waiting) return;
    waiting.enqueue<WaitTask>(Issue{}, point);
  }
  bool eventDone(Event event) override {
    if (static_cast<CpuEvent*>(event)->get().passed()) return true;
    streams_.hurry();
    return false;
  }
  void synchronize(Event event) override {
    CpuStreams::waitFor(static_cast<CpuEvent*>(event)->get());
  }

  // The first call searches for a compiler. The constructor of the device does not search, because
  // the search starts processes.
  const codegen::KernelCompiler* compiler() const override {
    std::call_once(compiler_once_,
                   [this] { compiler_ = codegen::makeCppCompiler(why_no_compiler_); });
    return compiler_.get();
  }
  std::string whyNoCompiler() const override { return why_no_compiler_; }
  LoadedKernel load(const codegen::KernelImage& image, const std::string& entry) override;
  void launch(KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              Stream stream, const Issue& issue) override;
  std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec& spec,
                                                      const AlgorithmChoices&) override {
    setBlasThreadsOnce(pool_.threads());
    return std::make_shared<CpuPreparedMatmul>(streams_, pool_, matmulShape(spec), matmul_library_);
  }
  int64_t libraryWorkspace(const LibraryCall& call) const override {
    return cpuLibraryWorkspace(call, pool_.threads());
  }
  void library(const LibraryCall& call, Stream stream, const Issue& issue) override {
    enqueueWork(streams_.stream(stream), issue, [this, call] { cpuLibrary(call, pool_); });
  }
  void communicate(comm::Communicator& communicator, std::span<const comm::Operation> group,
                   Stream stream, const Issue& issue) override {
    enqueueCommunicate(orders_, communicator, group, streams_.stream(stream), issue);
    if (communicator.size() > 1) streams_.hurry();
  }
  void copy(void* dst, const void* src, int64_t bytes, Stream stream, const Issue& issue) override {
    if (bytes <= 0) return;
    enqueueWork(streams_.stream(stream), issue, [=] { std::memmove(dst, src, bytes); });
  }
  void fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) override {
    if (bytes <= 0) return;
    enqueueWork(streams_.stream(stream), issue, [=] { std::memset(dst, byte, bytes); });
  }
  void hostTask(std::function<void()> task, Stream stream, const Issue& issue) override {
    enqueueWork(streams_.stream(stream), issue, std::move(task));
  }

 private:
  std::optional<uint64_t> seed_;
  const matmul::MatmulLibrary* matmul_library_;  // null: OpenBLAS multiplies all floats
  TilePool pool_;
  PostOrders orders_;
  std::unique_ptr<CpuStreams> streams_holder_;
  CpuStreams& streams_;
  CpuAllocator allocator_;
  mutable std::once_flag compiler_once_;
  mutable std::unique_ptr<codegen::KernelCompiler> compiler_;
  mutable std::string why_no_compiler_;
};

LoadedKernel CpuDevice::load(const codegen::KernelImage& image, const std::string& entry) {
  auto kernel = std::make_shared<CpuKernel>();
  try {
    kernel->library = image.library ? image.library : codegen::loadLibrary(image.bytes);
  } catch (const UserError& error) {
    userErrorWith(error.code(), "kernel {}: {}", entry, error.what());
  }
  void* symbol = codegen::findEntry(kernel->library, entry);
  HEDDLE_USER_CHECK(symbol != nullptr, "the kernel image has no entry point {}", entry);
  kernel->function = reinterpret_cast<CpuKernelFunction>(symbol);
  return kernel;
}

void CpuDevice::launch(KernelHandle kernel, const codegen::LaunchStage& stage,
                       const std::byte* args, Stream stream, const Issue& issue) {
  HEDDLE_CHECK(kernel != nullptr, "launch of {} without a kernel", stage.entry);
  CpuStream& queue = streams_.stream(stream);
  queue.enqueue<LaunchTask>(issue, pool_, static_cast<const CpuKernel*>(kernel)->function,
                            queue.buffer(args, stage.args.size()), stage.grid, queue);
}

}  // namespace

std::unique_ptr<Device> makeCpuDevice(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace heddle::host
