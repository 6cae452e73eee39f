#include "tests/host/gpu_device.h"
#include "tests/host/random/random_orders.h"

namespace heddle::host::random_orders_gpu_test {
namespace {

using RandomOrdersGpu = GpuDeviceFixture;

TEST_F(RandomOrdersGpu, KernelsMatchTheReferenceAndTheRequiredOrders) {
  for (uint64_t seed = 1; seed <= 60; ++seed) random_orders::check(seed, DeviceKind::Cuda);
}

}  // namespace
}  // namespace heddle::host::random_orders_gpu_test
