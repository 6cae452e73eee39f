#include "host/device/null/null_device.h"

#include <gtest/gtest.h>

#include <set>

namespace heddle::host::null_device_test {
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

}  // namespace
}  // namespace heddle::host::null_device_test
