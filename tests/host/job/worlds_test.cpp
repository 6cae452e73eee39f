#include "host/job/worlds.h"

#include <gtest/gtest.h>

#include <string>

#include "host/device/load_module.h"
#include "ir/base/error.h"
#include "tests/host/environment_variable.h"

namespace heddle::host::worlds_test {
namespace {

using testing::EnvironmentVariable;

TEST(Worlds, JobWithoutMpirunHasOneRank) {
  EnvironmentVariable open_mpi("OMPI_COMM_WORLD_SIZE", nullptr);
  EnvironmentVariable pmi("PMI_SIZE", nullptr);
  EXPECT_FALSE(startedByMpi());
  auto world = makeJobWorld(DeviceKind::Cpu, 0);
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->rank(), 0);
}

TEST(Worlds, InProcessWorldsAreInRankOrder) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 3);
  ASSERT_EQ(worlds.size(), 3U);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(worlds[r]->rank(), r);
}

TEST(Worlds, CudaWithoutAGpuIsReported) {
  std::string why;
  if (cudaDeviceCount(why) > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(why.empty());
  EXPECT_THROW(makeCudaDevice(0), UserError);
  EXPECT_THROW(makeInProcessWorldsFor(DeviceKind::Cuda, 2), UserError);
}

}  // namespace
}  // namespace heddle::host::worlds_test
