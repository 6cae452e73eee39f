#pragma once

#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "host/executable.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/error.h"
#include "ir/graph/builder.h"

// Helpers for the tests of Executable and FusionExecutor.
namespace heddle::host::testing {

inline Tensor deviceFloats(Device& device, const std::vector<float>& values,
                           std::vector<int64_t> sizes) {
  HostTensor host(DType::F32, sizes);
  for (size_t i = 0; i < values.size(); ++i) host.as<float>()[i] = values[i];
  return toDevice(device, device.allocator(), host, denseDesc(DType::F32, std::move(sizes)));
}

// Returns first, first + step, first + 2 * step, ...
inline std::vector<float> ramp(size_t count, float first, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

inline std::vector<float> floatsOf(Device& device, const Argument& argument) {
  const HostTensor host = toHost(device, std::get<Tensor>(argument));
  const float* data = host.as<float>();
  return {data, data + host.numel()};
}

// Returns a tensor for the null device, which reads and writes no data. The tensor has only one
// byte of memory.
inline Tensor nullTensor(std::vector<int64_t> sizes, DType dtype = DType::F32) {
  alignas(16) static char memory;
  return {&memory, denseDesc(dtype, std::move(sizes)), nullptr};
}

inline Program programOf(const std::string& text) {
  return parseProgram("heddle 1\n" + text, "test");
}

// After failAt(n), the n-th allocation throws, counted from 0. If n is -1, no allocation throws.
class FailingAllocator : public Allocator {
 public:
  explicit FailingAllocator(Allocator& inner) : inner_(inner) {}
  void failAt(int64_t n) { left_ = n; }
  void* allocate(int64_t bytes, Stream stream) override {
    if (left_.load() >= 0 && left_-- == 0) throw std::bad_alloc();
    return inner_.allocate(bytes, stream);
  }
  void deallocate(void* memory, int64_t bytes, Stream stream) noexcept override {
    inner_.deallocate(memory, bytes, stream);
  }

 private:
  Allocator& inner_;
  std::atomic<int64_t> left_{-1};
};

template <class Work>
std::string userErrorOf(const Work& work) {
  try {
    work();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

}  // namespace heddle::host::testing
