#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/comm/conformance/values.h"

namespace heddle::comm::conformance {

// The memory in which a rank has its buffers. All functions work in the order of the rank's stream;
// only read() and synchronize() wait for the stream.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data) = 0;
  virtual void set(void* to, unsigned char byte, size_t bytes) = 0;
  // Starts a copy. The caller must not change `from` until synchronize() or read() has returned.
  virtual void upload(void* to, const void* from, size_t bytes) = 0;
  // Waits for the stream. Returns the bytes in host memory, which are valid until the next call.
  virtual const unsigned char* read(const void* from, size_t bytes) = 0;
  // Returns host memory from which upload() is fast. There is one block, which is valid until the
  // next call.
  virtual unsigned char* staging(size_t bytes) = 0;
  virtual void* stream() = 0;
  virtual void synchronize() = 0;
};

class HostMemory : public Memory {
 public:
  void* allocate(size_t bytes) override { return std::malloc(bytes); }
  void release(void* data) override { std::free(data); }
  void set(void* to, unsigned char byte, size_t bytes) override { std::memset(to, byte, bytes); }
  void upload(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  const unsigned char* read(const void* from, size_t) override {
    return static_cast<const unsigned char*>(from);
  }
  unsigned char* staging(size_t bytes) override {
    if (staging_.size() < bytes) staging_.resize(bytes);
    return staging_.data();
  }
  void* stream() override { return nullptr; }
  void synchronize() override {}

 private:
  std::vector<unsigned char> staging_;
};

// Reports the first of `count` elements that differs from the expected one. Without `tolerance` the
// bits must be equal. Returns true if no element differs. `first` is the index of the first element
// in the report.
inline bool expectElements(const std::string& what, DType dtype, const unsigned char* got,
                           const unsigned char* wanted, int64_t count, int64_t first,
                           double tolerance) {
  const auto size = static_cast<size_t>(sizeOf(dtype));
  if (count == 0 || std::memcmp(got, wanted, static_cast<size_t>(count) * size) == 0) return true;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(got + at, wanted + at, size) == 0) continue;
    const double a = get(got, dtype, i), b = get(wanted, dtype, i);
    if (std::fabs(a - b) <= tolerance * std::fabs(b)) continue;
    ADD_FAILURE() << what << ": element " << first + i << " is " << a << ", expected " << b;
    return false;
  }
  return true;
}

// A buffer with guard bytes after its end.
class Buffer {
 public:
  Buffer(Memory& memory, DType dtype, int64_t count)
      : memory_(memory),
        dtype_(dtype),
        count_(count),
        bytes_(static_cast<size_t>(count * sizeOf(dtype))),
        data_(memory.allocate(bytes_ + kGuard)) {
    poison();
    memory_.synchronize();
  }
  ~Buffer() { memory_.release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }

  void poison() { memory_.set(data_, kPoison, bytes_ + kGuard); }
  void upload(const unsigned char* from) { memory_.upload(data_, from, bytes_); }
  // Sets element i to value(i).
  template <class Value>
  void fill(const Value& value) {
    unsigned char* bytes = memory_.staging(bytes_);
    putAll(bytes, dtype_, count_, value);
    upload(bytes);
    memory_.synchronize();
  }

  // Returns all bytes, which are valid until the next read of this memory. Reports a test failure
  // if something was written after the end of the buffer.
  const unsigned char* read(const std::string& what) const {
    const unsigned char* got = memory_.read(data_, bytes_ + kGuard);
    const std::vector<unsigned char> guard(kGuard, kPoison);
    if (std::memcmp(got + bytes_, guard.data(), kGuard) != 0) {
      ADD_FAILURE() << what << ": wrote past the end of " << count_ << " elements";
    }
    return got;
  }
  // Reports the first element whose bits differ from value(i).
  template <class Value>
  void expect(const std::string& what, const Value& value) const {
    std::vector<unsigned char> wanted(bytes_);
    putAll(wanted.data(), dtype_, count_, value);
    expectElements(what, dtype_, read(what), wanted.data(), count_, 0, 0.0);
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kPoison = 0xA5;
  Memory& memory_;
  DType dtype_;
  int64_t count_;
  size_t bytes_;
  void* data_;
};

}  // namespace heddle::comm::conformance
