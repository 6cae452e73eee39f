#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"

namespace heddle::bench {

// Allocates no memory: every allocation has the same address.
class DryAllocator : public host::Allocator {
 public:
  void* allocate(int64_t, host::Stream) override { return memory_; }
  void deallocate(void*, int64_t, host::Stream) noexcept override {}

 private:
  alignas(256) std::byte memory_[256];
};

// A device that compiles and loads kernels like the CPU device, but launches none. The measured
// time of a run includes the cost of filling argument blocks, but not the cost of kernels, memory
// and streams.
class DryDevice : public host::Device {
 public:
  host::DeviceKind kind() const override { return host::DeviceKind::Cpu; }
  std::string description() const override { return "dry"; }
  host::Allocator& allocator() override { return allocator_; }
  host::Stream createStream() override { return null_->createStream(); }
  void destroyStream(host::Stream stream) noexcept override { null_->destroyStream(stream); }
  host::Event createEvent() override { return null_->createEvent(); }
  void destroyEvent(host::Event event) noexcept override { null_->destroyEvent(event); }
  void recordEvent(host::Event, host::Stream) override {}
  void waitEvent(host::Stream, host::Event) override {}
  bool eventDone(host::Event) override { return true; }
  void synchronize(host::Event) override {}
  const codegen::KernelCompiler* compiler() const override { return cpu_->compiler(); }
  host::LoadedKernel load(const codegen::KernelImage& image, const std::string& entry) override {
    return cpu_->load(image, entry);
  }
  void launch(host::KernelHandle, const codegen::LaunchStage&, const std::byte*, host::Stream,
              const host::Issue&) override {}
  std::shared_ptr<const host::PreparedMatmul> prepareMatmul(
      const host::MatmulSpec& spec, const host::AlgorithmChoices& choices) override {
    return null_->prepareMatmul(spec, choices);
  }
  int64_t libraryWorkspace(const host::LibraryCall& call) const override {
    return null_->libraryWorkspace(call);
  }
  void library(const host::LibraryCall& call, host::Stream stream,
               const host::Issue& issue) override {
    null_->library(call, stream, issue);
  }
  void communicate(comm::Communicator& c, std::span<const comm::Operation> group, host::Stream s,
                   const host::Issue& i) override {
    null_->communicate(c, group, s, i);
  }
  void copy(void* dst, const void* src, int64_t bytes, host::Stream s,
            const host::Issue& i) override {
    null_->copy(dst, src, bytes, s, i);
  }
  void fill(void* dst, int byte, int64_t bytes, host::Stream s, const host::Issue& i) override {
    null_->fill(dst, byte, bytes, s, i);
  }
  void hostTask(std::function<void()> task, host::Stream s, const host::Issue& i) override {
    null_->hostTask(std::move(task), s, i);
  }

 private:
  DryAllocator allocator_;
  std::unique_ptr<host::Device> null_ = host::makeNullDevice();
  std::unique_ptr<host::Device> cpu_ = host::makeCpuDevice({.threads = 1, .adversarial_seed = {}});
};

}  // namespace heddle::bench
