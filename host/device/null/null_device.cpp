#include "host/device/null/null_device.h"

namespace heddle::host {
namespace {

constexpr uintptr_t kFirstAddress = uintptr_t{1} << 32;
constexpr uintptr_t kAddressStep = 256;

class NullAllocator : public Allocator {
 public:
  explicit NullAllocator(NullCounts& counts) : counts_(counts) {}

  void* allocate(int64_t bytes, Stream) override {
    ++counts_.allocate;
    const uintptr_t size = (static_cast<uintptr_t>(bytes) + kAddressStep - 1) & ~(kAddressStep - 1);
    return reinterpret_cast<void*>(next_.fetch_add(size));
  }
  void deallocate(void*, int64_t, Stream) noexcept override { ++counts_.deallocate; }

 private:
  NullCounts& counts_;
  std::atomic<uintptr_t> next_{kFirstAddress};
};

class NullMatmul : public PreparedMatmul {
 public:
  explicit NullMatmul(std::shared_ptr<NullCounts> counts) : counts_(std::move(counts)) {}
  void run(const MatmulOperands&, Stream, const Issue&) const override { ++counts_->matmul; }

 private:
  std::shared_ptr<NullCounts> counts_;
};

class NullDevice : public Device {
 public:
  explicit NullDevice(std::shared_ptr<NullCounts> counts)
      : counts_(std::move(counts)), allocator_(*counts_) {}

  DeviceKind kind() const override { return DeviceKind::Null; }
  std::string description() const override { return "null"; }
  Allocator& allocator() override { return allocator_; }

  Stream createStream() override { return handle(++counts_->create_stream); }
  Stream createUrgentStream() override {
    ++counts_->create_urgent_stream;
    return createStream();
  }
  void destroyStream(Stream) noexcept override {}
  Event createEvent() override { return handle(++counts_->create_event); }
  void destroyEvent(Event) noexcept override {}
  void recordEvent(Event, Stream) override { ++counts_->record_event; }
  void waitEvent(Stream, Event) override { ++counts_->wait_event; }
  bool eventDone(Event) override { return true; }
  void synchronize(Event) override { ++counts_->synchronize; }

  const codegen::KernelCompiler* compiler() const override { return nullptr; }
  LoadedKernel load(const codegen::KernelImage&, const std::string&) override {
    return {LoadedKernel(), handle(++counts_->load)};  // nothing to unload
  }
  void launch(KernelHandle, const codegen::LaunchStage&, const std::byte*, Stream,
              const Issue&) override {
    ++counts_->launch;
  }
  std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec&,
                                                      const AlgorithmChoices&) override {
    return std::make_shared<NullMatmul>(counts_);
  }
  int64_t libraryWorkspace(const LibraryCall&) const override { return 0; }
  void library(const LibraryCall&, Stream, const Issue&) override { ++counts_->library; }
  void communicate(comm::Communicator&, std::span<const comm::Operation> group, Stream,
                   const Issue&) override {
    ++counts_->communicate;
    counts_->operations += static_cast<int64_t>(group.size());
  }
  void copy(void*, const void*, int64_t bytes, Stream, const Issue&) override {
    ++counts_->copy;
    counts_->copied_bytes += bytes;
  }
  void fill(void*, int, int64_t, Stream, const Issue&) override { ++counts_->fill; }
  void hostTask(std::function<void()>, Stream, const Issue&) override { ++counts_->host_task; }

 private:
  // Returns a handle that is not null. Nothing dereferences it. Two streams, two events or two
  // kernels never get the same handle.
  static void* handle(int64_t number) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(number) * kAddressStep);
  }

  std::shared_ptr<NullCounts> counts_;
  NullAllocator allocator_;
};

}  // namespace

std::unique_ptr<Device> makeNullDevice(std::shared_ptr<NullCounts> counts) {
  return std::make_unique<NullDevice>(std::move(counts));
}

std::unique_ptr<Device> makeNullDevice() { return makeNullDevice(std::make_shared<NullCounts>()); }

}  // namespace heddle::host
