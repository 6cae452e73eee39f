#include <gtest/gtest.h>

#include "host/device/device.h"
#include "host/device/null/null_device.h"

namespace heddle::host::tracking_allocator_test {
namespace {

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

}  // namespace
}  // namespace heddle::host::tracking_allocator_test
