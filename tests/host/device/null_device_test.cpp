#include "host/device/null/null_device.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/base/error.h"

namespace heddle::host::device_null_test {
namespace {

TEST(NullDevice, CallsAreCountedAndMemoryIsUntouched) {
  auto counts = std::make_shared<NullCounts>();
  std::unique_ptr<Device> device = makeNullDevice(counts);
  EXPECT_EQ(device->kind(), DeviceKind::Null);
  EXPECT_EQ(device->compiler(), nullptr);
  Stream stream = device->createStream();
  ASSERT_NE(stream, nullptr);
  bool ran = false;
  device->hostTask([&] { ran = true; }, stream, {});
  device->copy(nullptr, nullptr, 128, stream, {});
  device->fill(nullptr, 0, 128, stream, {});
  device->launch(device->load({}, "k").get(), {}, nullptr, stream, {});
  device->prepareMatmul({}, {})->run({}, stream, {});
  Event event = device->createEvent();
  device->recordEvent(event, stream);
  device->waitEvent(stream, event);
  EXPECT_TRUE(device->eventDone(event));
  device->synchronize(event);
  device->destroyEvent(event);
  device->destroyStream(stream);
  device.reset();
  EXPECT_FALSE(ran);
  EXPECT_EQ(counts->host_task, 1);
  EXPECT_EQ(counts->copied_bytes, 128);
  EXPECT_EQ(counts->launch, 1);
  EXPECT_EQ(counts->matmul, 1);
  EXPECT_EQ(counts->record_event, 1);
  EXPECT_EQ(counts->wait_event, 1);
}

TEST(NullDevice, AddressesAreDistinctAndAligned) {
  std::unique_ptr<Device> device = makeNullDevice();
  std::set<uintptr_t> seen;
  uintptr_t last_end = 0;
  for (int64_t bytes : {1, 256, 257, 1000000}) {
    const auto address = reinterpret_cast<uintptr_t>(device->allocator().allocate(bytes, nullptr));
    EXPECT_EQ(address % 256, 0U);
    EXPECT_GE(address, last_end);
    last_end = address + static_cast<uintptr_t>(bytes);
    EXPECT_TRUE(seen.insert(address).second);
  }
}

TEST(TrackingAllocator, HeldAndPeakBytesAreCounted) {
  std::unique_ptr<Device> device = makeNullDevice();
  TrackingAllocator tracking(device->allocator());
  void* a = tracking.allocate(100, nullptr);
  void* b = tracking.allocate(50, nullptr);
  tracking.deallocate(a, 100, nullptr);
  EXPECT_EQ(tracking.heldBytes(), 50);
  EXPECT_EQ(tracking.peakBytes(), 150);
  tracking.resetPeak();
  EXPECT_EQ(tracking.peakBytes(), 50);
  tracking.deallocate(b, 50, nullptr);
  EXPECT_EQ(tracking.heldBytes(), 0);
}

template <class Error>
std::string rethrown(const ErrorSink& sink, const std::vector<std::string>* texts) {
  try {
    sink.rethrow(texts);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(ErrorSink, FirstErrorIsKeptWithItsInstruction) {
  ErrorSink sink;
  EXPECT_FALSE(sink.failed());
  sink.rethrow();
  sink.report(std::make_exception_ptr(UserError("first")), 1);
  sink.report(std::make_exception_ptr(UserError("second")), 0);
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(rethrown<UserError>(sink, nullptr), "instruction 1: first");
  const std::vector<std::string> texts = {"a", "free %x"};
  EXPECT_EQ(rethrown<UserError>(sink, &texts), "instruction 1 (free %x): first");
  sink.clear();
  EXPECT_FALSE(sink.failed());
  sink.rethrow();
}

TEST(ErrorSink, ErrorTypeIsKept) {
  ErrorSink sink;
  sink.report(std::make_exception_ptr(InternalError("bug")), -1);
  EXPECT_EQ(rethrown<InternalError>(sink, nullptr), "bug");
  sink.clear();
  sink.report(std::make_exception_ptr(std::bad_alloc()), 3);
  EXPECT_EQ(rethrown<UserError>(sink, nullptr), "instruction 3: out of memory");
}

}  // namespace
}  // namespace heddle::host::device_null_test
