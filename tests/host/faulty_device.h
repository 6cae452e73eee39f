#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "ir/base/check.h"

namespace heddle::host::testing {

// A CPU device whose calls fail like those of a GPU.
// - After failAt(n) the n-th call that may fail throws, counted from 0. Allocations throw
//   std::bad_alloc.
// - After loseAt(n) that call and all later calls throw, as after a fault of a GPU kernel.
// - After giveAway(p) the memory at `p` looks like memory of another device.
// - After faultInKernel() the next kernel fails while it runs, after the launch has returned.
// If recordEvent(), waitEvent() or synchronize() fails, callers regard the device as lost (see
// host/device/device.h). These functions therefore wait for all work before they throw.
class FaultyDevice : public Device {
 public:
  static constexpr const char* kLost = "the device is lost";

  explicit FaultyDevice(const CpuOptions& options = {1, std::nullopt})
      : inner_(makeCpuDevice(options)), allocator_(*this) {}

  void failAt(int64_t call) { left_ = call, sticky_ = false, failed_ = false; }
  void loseAt(int64_t call) { left_ = call, sticky_ = true, failed_ = false; }
  void repair() { left_ = -1, sticky_ = false, failed_ = false; }
  void faultInKernel() { kernel_faults_ = true; }
  bool hasFailed() const { return failed_; }

  DeviceKind kind() const override { return inner_->kind(); }
  std::string description() const override { return inner_->description(); }
  Allocator& allocator() override { return allocator_; }
  std::string otherOwner(const void* data) override {
    ++owner_questions_;
    return data == foreign_ ? "cpu:1" : "";
  }
  int64_t ownedBlockBytes() const override { return 64; }
  // Makes the memory at `data` look like memory of another device, whose name is "cpu:1".
  void giveAway(const void* data) { foreign_ = data; }
  int64_t ownerQuestions() const { return owner_questions_; }
  Stream createStream() override {
    count();
    const Stream stream = inner_->createStream();
    std::lock_guard lock(mutex_);
    streams_.insert(stream);
    return stream;
  }
  void destroyStream(Stream stream) noexcept override {
    {
      std::lock_guard lock(mutex_);
      streams_.erase(stream);
    }
    inner_->destroyStream(stream);
  }
  Event createEvent() override { return count(), inner_->createEvent(); }
  void destroyEvent(Event event) noexcept override { inner_->destroyEvent(event); }
  void recordEvent(Event event, Stream stream) override {
    countLoss();
    inner_->recordEvent(event, stream);
  }
  void waitEvent(Stream stream, Event event) override {
    countLoss();
    inner_->waitEvent(stream, event);
  }
  // Queries are not counted, because a thread of the executable polls.
  bool eventDone(Event event) override {
    HEDDLE_USER_CHECK_CODE(DeviceLost, !(sticky_ && failed_), "{}", kLost);
    return inner_->eventDone(event);
  }
  void synchronize(Event event) override {
    countLoss();
    inner_->synchronize(event);
  }
  const codegen::KernelCompiler* compiler() const override { return inner_->compiler(); }
  std::string whyNoCompiler() const override { return inner_->whyNoCompiler(); }
  LoadedKernel load(const codegen::KernelImage& image, const std::string& entry) override {
    return count(), inner_->load(image, entry);
  }
  void launch(KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              Stream stream, const Issue& issue) override {
    count();
    if (kernel_faults_.exchange(false)) {
      inner_->hostTask([] { userError("the kernel accessed an illegal address"); }, stream, issue);
    }
    inner_->launch(kernel, stage, args, stream, issue);
  }
  std::shared_ptr<const PreparedMatmul> prepareMatmul(const MatmulSpec& spec,
                                                      const AlgorithmChoices& choices) override {
    return count(), inner_->prepareMatmul(spec, choices);
  }
  int64_t libraryWorkspace(const LibraryCall& call) const override {
    return inner_->libraryWorkspace(call);
  }
  void library(const LibraryCall& call, Stream stream, const Issue& issue) override {
    count();
    inner_->library(call, stream, issue);
  }
  void communicate(comm::Communicator& communicator, std::span<const comm::Operation> group,
                   Stream stream, const Issue& issue) override {
    count();
    inner_->communicate(communicator, group, stream, issue);
  }
  void copy(void* dst, const void* src, int64_t bytes, Stream stream, const Issue& issue) override {
    count();
    inner_->copy(dst, src, bytes, stream, issue);
  }
  void fill(void* dst, int byte, int64_t bytes, Stream stream, const Issue& issue) override {
    count();
    inner_->fill(dst, byte, bytes, stream, issue);
  }
  void hostTask(std::function<void()> task, Stream stream, const Issue& issue) override {
    count();
    inner_->hostTask(std::move(task), stream, issue);
  }

 private:
  class FaultyAllocator : public Allocator {
   public:
    explicit FaultyAllocator(FaultyDevice& device) : device_(device) {}
    void* allocate(int64_t bytes, Stream stream) override {
      if (device_.isDue()) throw std::bad_alloc();
      return device_.inner_->allocator().allocate(bytes, stream);
    }
    void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override {
      device_.inner_->allocator().deallocate(memory, bytes, stream);
    }

   private:
    FaultyDevice& device_;
  };

  // Returns whether the current call must fail.
  bool isDue() {
    if (sticky_ && failed_) return true;
    if (left_.load() < 0 || left_.fetch_sub(1) != 0) return false;
    failed_ = true;
    if (sticky_) finishWork();
    return true;
  }
  void count() { HEDDLE_USER_CHECK_CODE(DeviceLost, !isDue(), "{}", kLost); }
  void countLoss() {
    if (!isDue()) return;
    finishWork();
    userErrorWith(ErrorCode::DeviceLost, "{}", kLost);
  }
  void finishWork() {
    std::set<Stream> streams;
    {
      std::lock_guard lock(mutex_);
      streams = streams_;
    }
    const Event event = inner_->createEvent();
    for (const Stream stream : streams) {
      inner_->recordEvent(event, stream);
      inner_->synchronize(event);
    }
    inner_->destroyEvent(event);
  }

  std::unique_ptr<Device> inner_;
  FaultyAllocator allocator_;
  std::mutex mutex_;
  std::set<Stream> streams_{nullptr};  // nullptr: the default stream
  std::atomic<int64_t> left_{-1};
  std::atomic<bool> sticky_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> kernel_faults_{false};
  const void* foreign_ = nullptr;  // memory that looks like memory of another device
  std::atomic<int64_t> owner_questions_{0};
};

}  // namespace heddle::host::testing
