#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "host/device/device.h"

namespace heddle::host {

// Holds a GPU and a stream. Skips the test if there is no GPU.
class GpuDeviceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
    device_ = makeCudaDevice(0);
    stream_ = device_->createStream();
  }
  void TearDown() override {
    if (!device_) return;
    for (const Block& block : blocks_) {
      device_->allocator().deallocate(block.memory, block.bytes, stream_);
    }
    device_->destroyStream(stream_);
  }

  // Allocates memory that is freed at the end of the test.
  void* allocate(int64_t bytes) {
    blocks_.push_back({device_->allocator().allocate(bytes, stream_), bytes});
    return blocks_.back().memory;
  }
  void finish(Stream stream) {
    Event event = device_->createEvent();
    device_->recordEvent(event, stream);
    device_->synchronize(event);
    device_->destroyEvent(event);
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    void* memory = allocate(bytes);
    device_->copy(memory, values.data(), bytes, stream_, {});
    finish(stream_);
    return static_cast<T*>(memory);
  }
  template <class T>
  std::vector<T> download(const void* memory, size_t count, Stream stream) {
    std::vector<T> values(count);
    device_->copy(values.data(), memory, static_cast<int64_t>(count * sizeof(T)), stream, {});
    finish(stream);
    return values;
  }
  KernelHandle compile(const std::string& text, const std::string& entry) {
    codegen::KernelImage image;
    image.bytes = device_->compiler()->compile({codegen::Target::Cuda, text});
    return kernels_.emplace_back(device_->load(image, entry)).get();
  }

  struct Block {
    void* memory;
    int64_t bytes;
  };
  std::unique_ptr<Device> device_;
  Stream stream_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<LoadedKernel> kernels_;
};

}  // namespace heddle::host
