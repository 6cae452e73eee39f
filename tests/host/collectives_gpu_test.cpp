// Every collective in a program, with several ranks on one GPU.
#include "tests/host/collective_programs.h"

namespace heddle::host::collectives_gpu_test {
namespace {

TEST(CollectivesOnOneGpu, ProgramsOfEachOnOneToFourRanks) {
  std::string why;
  if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const auto& setting : testing::settingsOf(ranks)) {
      auto worlds = makeInProcessWorldsFor(DeviceKind::Cuda, ranks);
      testing::onEachWorld(worlds, [&](int, std::unique_ptr<comm::World>& world) {
        const auto device = makeCudaDevice(0);
        for (const auto& collective : testing::collectivePrograms()) {
          testing::runCollective(setting, collective, *world, *device);
        }
      });
    }
  }
}

}  // namespace
}  // namespace heddle::host::collectives_gpu_test
