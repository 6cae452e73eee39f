// Tests programs with every collective on teams of 1 to 4 ranks and along both axes of a mesh.
#include "host/device/cpu/cpu_device.h"
#include "tests/host/collective_programs.h"

namespace heddle::host::collectives_cpu_test {
namespace {

using testing::countsOn;
using testing::givenTo;
using testing::kCollectiveCount;
using testing::programFor;
using testing::programOf;
using testing::TeamSetting;
using testing::wholeJobSetting;

TEST(CollectivesCpu, EveryProgramIsRightOnOneToFourRanks) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const TeamSetting& setting : testing::settingsOf(ranks)) {
      auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
      testing::onEachWorld(worlds, [&](int, std::unique_ptr<comm::World>& world) {
        const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 11});
        for (const auto& collective : testing::collectivePrograms()) {
          testing::runCollective(setting, collective, *world, *device);
        }
      });
    }
  }
}

TEST(CollectivesCpu, AllToAllVBeyondItsBufferIsRefused) {
  const TeamSetting setting = wholeJobSetting(1);
  const Program program = programFor(setting, testing::kUnevenExchange);
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 1);
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(program, {device.get(), worlds[0].get(), nullptr});
  const Tensor x =
      testing::deviceFloats(*device, std::vector<float>(kCollectiveCount), {kCollectiveCount});
  const auto error = [&](int64_t sends, int64_t receives) {
    return testing::userErrorOf([&] {
      executable.run({x, countsOn(*device, {sends}), countsOn(*device, {receives})}).wait();
    });
  };
  EXPECT_NE(error(13, 13).find("sends 13 elements for rank 0 of the team, but only 12 of "),
            std::string::npos);
  EXPECT_NE(error(-1, 12).find("sends -1 elements"), std::string::npos);
  EXPECT_NE(error(12, 20).find("receives 20 elements"), std::string::npos);
  EXPECT_NE(error(12, 11).find("sends itself 12 elements and expects 11"), std::string::npos);
}

// Each mesh lists its ranks in its own order, and two meshes do not contain all ranks.
TEST(CollectivesCpu, TeamsOfSomeRanksAreRight) {
  const Program program = testing::printedAndParsed(programOf(R"(
mesh @some = [x=2] ranks=[2, 0]
mesh @one = [x=1] ranks=[1]
mesh @all = [x=3] ranks=[1, 2, 0]
program p(%x: f32[12]) -> (%y) {
  slot %y: f32[12]
  slot %all: f32[3, 12]
  slot %row: f32[12]
  %y = allocate
  copy %x -> %y
  on @some: $a = communicate broadcast %x -> %y team=@some root=0
  on @some: wait $a
  on @one: $b = communicate allreduce %x -> %y team=@one op=sum
  on @one: wait $b
  %all = allocate
  $c = communicate allgather %y -> %all team=@all[x]
  wait $c
  %row = alias %all[2]
  copy %row -> %y
  free %all
}
)"));
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 3);
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 3});
    Executable executable(program, {device.get(), world.get(), nullptr});
    std::vector<float> x(kCollectiveCount);
    for (int64_t i = 0; i < kCollectiveCount; ++i) x[static_cast<size_t>(i)] = givenTo(rank, i);
    const Tensor input = testing::deviceFloats(*device, x, {kCollectiveCount});
    const Outputs outputs = executable.run({input});
    outputs.wait();
    // The last rank of @all is rank 0. It has the values that rank 2 broadcast.
    const std::vector<float> got = testing::floatsOf(*device, outputs[0]);
    for (int64_t i = 0; i < kCollectiveCount; ++i)
      EXPECT_EQ(got[static_cast<size_t>(i)], givenTo(2, i));
    world->barrier();
  });
}

}  // namespace
}  // namespace heddle::host::collectives_cpu_test
