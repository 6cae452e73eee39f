// Tests programs with every collective, and lookups along a sharded axis, over MPI on host memory.
#include "host/device/cpu/cpu_device.h"
#include "tests/host/collective_programs.h"
#include "tests/host/lookup_bits.h"

namespace heddle::host::collectives_mpi_test {
namespace {

// One test, because a process can start MPI only once.
TEST(CollectivesMpi, EveryProgramAndLookupIsRight) {
  const auto world = makeJobWorld(DeviceKind::Cpu, 0);
  EXPECT_EQ(world->transport(), "mpi");
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  for (const auto& setting : testing::settingsOf(world->size())) {
    for (const auto& collective : testing::collectivePrograms()) {
      testing::runCollective(setting, collective, *world, *device);
    }
  }
  testing::expectLookupBits(*world, *device);
}

}  // namespace
}  // namespace heddle::host::collectives_mpi_test
