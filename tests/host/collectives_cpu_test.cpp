// Every collective in a program, on teams of 1 to 4 ranks and along both axes of a mesh, against
// values written out here. Also as the program that was printed.
#include <gtest/gtest.h>

#include "tests/host/example_files.h"
#include "tests/host/executable_common.h"

namespace heddle::host {
namespace {

using testing::programOf;

constexpr int64_t kCount = 12;  // whole parts for 1 to 4 ranks

// Element i of the input of a rank.
float given(int rank, int64_t i) { return static_cast<float>(1000 * rank + i); }
// Elements that rank `from` of a team sends to rank `to`: uneven, some none, at most 8 in all.
int64_t part(int64_t from, int64_t to) { return (from + 2 * to) % 3; }

// A job and one of its teams as the text names it.
struct Setting {
  int ranks;
  std::string mesh;
  std::string team;
  std::string index;                                  // of a rank within its team
  std::function<std::vector<int>(int rank)> members;  // of its team
};

std::vector<Setting> settings() {
  std::vector<Setting> out;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    out.push_back({ranks, "[x=" + std::to_string(ranks) + "]", "@m[x]", "@m.x.index", [ranks](int) {
                     std::vector<int> all;
                     for (int i = 0; i < ranks; ++i) all.push_back(i);
                     return all;
                   }});
  }
  out.push_back({4, "[y=2, x=2]", "@m[x]", "@m.x.index", [](int rank) {
                   return std::vector<int>{rank / 2 * 2, rank / 2 * 2 + 1};
                 }});
  out.push_back({4, "[y=2, x=2]", "@m[y]", "@m.y.index", [](int rank) {
                   return std::vector<int>{rank % 2, rank % 2 + 2};
                 }});
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// The body with TEAM, SIZE and INDEX of the setting. Inputs: %x, and the counts that this rank
// sends and receives.
Program programFor(const Setting& setting, const std::string& body) {
  std::string text = "mesh @m = " + setting.mesh +
                     "\nprogram p(%x: f32[12], %s: i64[SIZE], %r: i64[SIZE]) -> (%y) {\n" + body +
                     "}\n";
  text = replaced(text, "TEAM", setting.team);
  text = replaced(text, "SIZE", std::to_string(setting.members(0).size()));
  text = replaced(text, "INDEX", setting.index);
  const Program program = testing::printedAndParsed(programOf(text));
  EXPECT_TRUE(sameProgram(program, programOf(text)));
  return program;
}

Tensor counts(Device& device, const std::vector<int64_t>& values) {
  HostTensor host(DType::I64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) host.as<int64_t>()[i] = values[i];
  return toDevice(device, device.allocator(), host, denseDesc(DType::I64, host.sizes));
}

// wanted(team, me, i): element i of %y of team[me].
using Wanted = std::function<float(const std::vector<int>& team, int me, int64_t i)>;

void runSetting(const Setting& setting, const std::string& body, const Wanted& wanted) {
  const Program program = programFor(setting, body);
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, setting.ranks);
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 11});
    Executable executable(program, {device.get(), world.get(), nullptr});
    const std::vector<int> team = setting.members(rank);
    const int me = static_cast<int>(std::find(team.begin(), team.end(), rank) - team.begin());
    std::vector<float> x(kCount);
    for (int64_t i = 0; i < kCount; ++i) x[static_cast<size_t>(i)] = given(rank, i);
    std::vector<int64_t> sends, receives;
    for (int64_t other = 0; other < static_cast<int64_t>(team.size()); ++other) {
      sends.push_back(part(me, other));
      receives.push_back(part(other, me));
    }
    const Tensor input = testing::deviceFloats(*device, x, {kCount});
    const Tensor s = counts(*device, sends), r = counts(*device, receives);
    for (int run = 0; run < 3; ++run) {
      const Outputs outputs = executable.run({input, s, r});
      outputs.wait();
      const std::vector<float> got = testing::floatsOf(*device, outputs[0]);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i], wanted(team, me, static_cast<int64_t>(i)))
            << "element " << i << " on rank " << rank << " of " << setting.ranks << ", team "
            << setting.team;
      }
    }
    world->barrier();
  });
}

void run(const std::string& body, const Wanted& wanted) {
  for (const Setting& setting : settings()) runSetting(setting, body, wanted);
}

float sumOf(const std::vector<int>& team, int64_t i) {
  float sum = 0;
  for (int rank : team) sum += given(rank, i);
  return sum;
}

TEST(Collectives, BroadcastFromTheLast) {
  run(R"(
  slot %y: f32[12]
  %y = allocate
  $t = communicate broadcast %x -> %y team=TEAM root=SIZE - 1
  wait $t
)",
      [](const std::vector<int>& team, int, int64_t i) { return given(team.back(), i); });
}

TEST(Collectives, ReduceToTheLast) {
  run(R"(
  slot %y: f32[12]
  %y = allocate
  copy %x -> %y
  $t = communicate reduce %x -> %y team=TEAM op=sum root=SIZE - 1
  wait $t
)",
      [](const std::vector<int>& team, int me, int64_t i) {
        const bool root = me + 1 == static_cast<int>(team.size());
        return root ? sumOf(team, i) : given(team[static_cast<size_t>(me)], i);
      });
}

// The larger side is there on the root only, and what the others call by its name is nothing.
TEST(Collectives, GatherAllocatesOnTheRootOnly) {
  run(R"(
  slot %y: f32[12]
  slot %all: f32[SIZE, 12]
  slot %first: f32[12]
  %y = allocate
  copy %x -> %y
  if INDEX == SIZE - 1 {
    %all = allocate
  }
  $t = communicate gather %x -> %all team=TEAM root=SIZE - 1
  wait $t
  if INDEX == SIZE - 1 {
    %first = alias %all[0]
    copy %first -> %y
    free %all
  }
)",
      [](const std::vector<int>& team, int me, int64_t i) {
        const bool root = me + 1 == static_cast<int>(team.size());
        return given(root ? team.front() : team[static_cast<size_t>(me)], i);
      });
}

TEST(Collectives, GatherInPlaceOnTheRoot) {
  run(R"(
  slot %y: f32[SIZE, 12]
  slot %own: f32[12]
  %y = allocate
  for i in 0 .. SIZE {
    %own = alias %y[i]
    copy %x -> %own
  }
  %own = alias %y[0]
  $t = communicate gather %own -> %y team=TEAM root=0
  wait $t
)",
      [](const std::vector<int>& team, int me, int64_t i) {
        const auto row = static_cast<size_t>(me == 0 ? i / kCount : me);
        return given(team[row], i % kCount);
      });
}

TEST(Collectives, ScatterFromTheFirst) {
  run(R"(
  slot %y: f32[12 / SIZE]
  slot %big: f32[12]
  if INDEX == 0 {
    %big = allocate
    copy %x -> %big
  }
  %y = allocate
  $t = communicate scatter %big -> %y team=TEAM root=0
  wait $t
  if INDEX == 0 {
    free %big
  }
)",
      [](const std::vector<int>& team, int me, int64_t i) {
        return given(team.front(), me * (kCount / static_cast<int64_t>(team.size())) + i);
      });
}

TEST(Collectives, AllToAllOnItsOwnStream) {
  run(R"(
  slot %y: f32[12]
  %y = allocate
  !ready = record_event
  wait_event !ready stream=1
  $t = communicate all_to_all %x -> %y team=TEAM stream=1
  wait $t
)",
      [](const std::vector<int>& team, int me, int64_t i) {
        const int64_t each = kCount / static_cast<int64_t>(team.size());
        return given(team[static_cast<size_t>(i / each)], me * each + i % each);
      });
}

// What a rank gets begins where the parts of the sender for those before it end.
float exchanged(const std::vector<int>& team, int me, int64_t i) {
  int from = 0;
  const int size = static_cast<int>(team.size());
  while (from < size && i >= part(from, me)) i -= part(from++, me);
  if (from == size) return -1;
  for (int to = 0; to < me; ++to) i += part(from, to);
  return given(team[static_cast<size_t>(from)], i);
}

const char* const kExchange = R"(
  slot %y: f32[12]
  slot %sends: list i64[SIZE]
  slot %receives: list i64[SIZE]
  %sends = read_back %s
  %receives = read_back %r
  %y = allocate
  copy %x -> %y
  for i in 0 .. 2 {
    $t = communicate all_to_all_v %x -> %y team=TEAM send_counts=%sends recv_counts=%receives
    wait $t
  }
)";

TEST(Collectives, AllToAllVTakesItsCountsFromTheDevice) {
  run(kExchange, [](const std::vector<int>& team, int me, int64_t i) {
    const float got = exchanged(team, me, i);
    return got < 0 ? given(team[static_cast<size_t>(me)], i) : got;  // left as it was
  });
}

TEST(Collectives, AllToAllVBeyondItsBufferIsAnError) {
  const Setting setting = settings()[0];
  const Program program = programFor(setting, kExchange);
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 1);
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(program, {device.get(), worlds[0].get(), nullptr});
  const Tensor x = testing::deviceFloats(*device, std::vector<float>(kCount), {kCount});
  const auto error = [&](int64_t sends, int64_t receives) {
    return testing::userErrorOf([&] {
      executable.run({x, counts(*device, {sends}), counts(*device, {receives})}).wait();
    });
  };
  EXPECT_NE(error(13, 13).find("sends 13 elements for rank 0 of the team, 12 are left"),
            std::string::npos);
  EXPECT_NE(error(-1, 12).find("sends -1 elements"), std::string::npos);
  EXPECT_NE(error(12, 20).find("receives 20 elements"), std::string::npos);
  EXPECT_NE(error(12, 11).find("sends itself 12 elements and expects 11"), std::string::npos);
}

TEST(Collectives, ABarrierBetweenCopies) {
  run(R"(
  slot %y: f32[12]
  %y = allocate
  $a = communicate barrier team=TEAM
  wait $a
  copy %x -> %y
  $b = communicate barrier team=@m
  wait $b
)",
      [](const std::vector<int>& team, int me, int64_t i) {
        return given(team[static_cast<size_t>(me)], i);
      });
}

// A root that changes from trip to trip, so that everybody's part has been everywhere.
TEST(Collectives, TheRootMayBeALoopIndex) {
  run(R"(
  slot %y: f32[SIZE, 12]
  slot %row: f32[12]
  %y = allocate
  for i in 0 .. SIZE {
    %row = alias %y[i]
    $t = communicate broadcast %x -> %row team=TEAM root=i
    wait $t
  }
)",
      [](const std::vector<int>& team, int, int64_t i) {
        return given(team[static_cast<size_t>(i / kCount)], i % kCount);
      });
}

// Meshes of some ranks only, in an order of their own, one of them of a single rank.
TEST(Collectives, TeamsOfSomeRanks) {
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
    std::vector<float> x(kCount);
    for (int64_t i = 0; i < kCount; ++i) x[static_cast<size_t>(i)] = given(rank, i);
    const Tensor input = testing::deviceFloats(*device, x, {kCount});
    const Outputs outputs = executable.run({input});
    outputs.wait();
    // The last of @all is rank 0, which has what rank 2 broadcast.
    const std::vector<float> got = testing::floatsOf(*device, outputs[0]);
    for (int64_t i = 0; i < kCount; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], given(2, i));
    world->barrier();
  });
}

}  // namespace
}  // namespace heddle::host
