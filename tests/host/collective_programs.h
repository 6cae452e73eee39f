#pragma once

#include <gtest/gtest.h>

#include "host/tensor.h"
#include "tests/host/example_files.h"
#include "tests/host/executable_common.h"

// Programs for every collective, with expected values written out by hand. The tests of all devices
// and transports use them.
namespace heddle::host::testing {

constexpr int64_t kCollectiveCount = 12;  // divisible by 1 to 4 ranks

// Returns element i of the input of a rank.
inline float givenTo(int rank, int64_t i) { return static_cast<float>(1000 * rank + i); }
// Returns the number of elements that rank `from` of a team sends to rank `to`. The numbers differ,
// and some are 0. In a team of at most 4 ranks, a rank sends at most 8 elements in total.
inline int64_t unevenShare(int64_t from, int64_t to) { return (from + 2 * to) % 3; }

// A job and the team of each rank. The strings are inserted into the text of a host program.
struct TeamSetting {
  int ranks;
  std::string mesh;
  std::string team;
  std::string index;                                  // text for the index of a rank in its team
  std::function<std::vector<int>(int rank)> members;  // members of the team of a rank
};

inline TeamSetting wholeJobSetting(int ranks) {
  return {ranks, "[x=" + std::to_string(ranks) + "]", "@m[x]", "@m.x.index", [ranks](int) {
            std::vector<int> all;
            for (int i = 0; i < ranks; ++i) all.push_back(i);
            return all;
          }};
}
// Returns the teams along each axis of [y=2, x=ranks / 2], for jobs of an even number of ranks.
inline std::vector<TeamSetting> axisSettings(int ranks) {
  const int columns = ranks / 2;
  const std::string mesh = "[y=2, x=" + std::to_string(columns) + "]";
  return {{ranks, mesh, "@m[x]", "@m.x.index",
           [columns](int rank) {
             std::vector<int> row;
             for (int i = 0; i < columns; ++i) row.push_back(rank / columns * columns + i);
             return row;
           }},
          {ranks, mesh, "@m[y]", "@m.y.index", [columns](int rank) {
             return std::vector<int>{rank % columns, rank % columns + columns};
           }}};
}
// Returns the team of all ranks. If the number of ranks is even, also returns axisSettings().
inline std::vector<TeamSetting> settingsOf(int ranks) {
  std::vector<TeamSetting> out{wholeJobSetting(ranks)};
  if (ranks % 2 == 0) {
    for (TeamSetting& setting : axisSettings(ranks)) out.push_back(std::move(setting));
  }
  return out;
}

// wanted(team, me, i) is the expected element i of %y on rank team[me].
struct CollectiveProgram {
  std::string name;
  std::string body;  // TEAM, SIZE and INDEX are replaced by values of the TeamSetting
  std::function<float(const std::vector<int>& team, int me, int64_t i)> wanted;
};

inline float sumOver(const std::vector<int>& team, int64_t i) {
  float sum = 0;
  for (int rank : team) sum += givenTo(rank, i);
  return sum;
}

// Returns the i-th element that rank `me` receives in an all-to-all-v, or -1 if it receives at most
// i elements. Each sender stores its parts in the order of the receivers.
inline float exchangedTo(const std::vector<int>& team, int me, int64_t i) {
  int from = 0;
  const int size = static_cast<int>(team.size());
  while (from < size && i >= unevenShare(from, me)) i -= unevenShare(from++, me);
  if (from == size) return -1;
  for (int to = 0; to < me; ++to) i += unevenShare(from, to);
  return givenTo(team[static_cast<size_t>(from)], i);
}

inline const char* const kUnevenExchange = R"(
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

inline std::vector<CollectiveProgram> collectivePrograms() {
  return {
      {"BroadcastFromTheLast", R"(
  slot %y: f32[12]
  %y = allocate
  $t = communicate broadcast %x -> %y team=TEAM root=SIZE - 1
  wait $t
)",
       [](const std::vector<int>& team, int, int64_t i) { return givenTo(team.back(), i); }},
      // Only two ranks take part.
      {"SendToTheFirst", R"(
  slot %y: f32[12]
  %y = allocate
  copy %x -> %y
  if SIZE == 2 {
    $t = communicate send %x -> %y team=TEAM root=SIZE - 1
    wait $t
  }
)",
       [](const std::vector<int>& team, int me, int64_t i) {
         return givenTo(team.size() == 2 ? team.back() : team[static_cast<size_t>(me)], i);
       }},
      {"ReduceToTheLast", R"(
  slot %y: f32[12]
  %y = allocate
  copy %x -> %y
  $t = communicate reduce %x -> %y team=TEAM op=sum root=SIZE - 1
  wait $t
)",
       [](const std::vector<int>& team, int me, int64_t i) {
         const bool root = me + 1 == static_cast<int>(team.size());
         return root ? sumOver(team, i) : givenTo(team[static_cast<size_t>(me)], i);
       }},
      // Only the root allocates %all, which receives the elements of all ranks.
      {"GatherAllocatesOnTheRootOnly", R"(
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
         return givenTo(root ? team.front() : team[static_cast<size_t>(me)], i);
       }},
      {"GatherInPlaceOnTheRoot", R"(
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
         const auto row = static_cast<size_t>(me == 0 ? i / kCollectiveCount : me);
         return givenTo(team[row], i % kCollectiveCount);
       }},
      {"ScatterFromTheFirst", R"(
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
         return givenTo(team.front(),
                        me * (kCollectiveCount / static_cast<int64_t>(team.size())) + i);
       }},
      {"AllToAllOnItsOwnStream", R"(
  slot %y: f32[12]
  %y = allocate
  !ready = record_event
  wait_event !ready stream=1
  $t = communicate all_to_all %x -> %y team=TEAM stream=1
  wait $t
)",
       [](const std::vector<int>& team, int me, int64_t i) {
         const int64_t each = kCollectiveCount / static_cast<int64_t>(team.size());
         return givenTo(team[static_cast<size_t>(i / each)], me * each + i % each);
       }},
      {"ABarrierBetweenCopies", R"(
  slot %y: f32[12]
  %y = allocate
  $a = communicate barrier team=TEAM
  wait $a
  copy %x -> %y
  $b = communicate barrier team=@m
  wait $b
)",
       [](const std::vector<int>& team, int me, int64_t i) {
         return givenTo(team[static_cast<size_t>(me)], i);
       }},
      // The root is the loop index, so every rank is the root once.
      {"TheRootMayBeALoopIndex", R"(
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
         return givenTo(team[static_cast<size_t>(i / kCollectiveCount)], i % kCollectiveCount);
       }},
      // One `communicate` instruction has operations of different sizes. Two of them read the same
      // input.
      {"SeveralAllreducesInOnePost", R"(
  slot %y: f32[29]
  slot %tail: f32[5]
  slot %a: f32[12]
  slot %b: f32[5]
  slot %c: f32[12]
  %y = allocate
  %tail = alias %x slice starts=[7] stops=[12]
  %a = alias %y slice starts=[0] stops=[12]
  %b = alias %y slice starts=[12] stops=[17]
  %c = alias %y slice starts=[17] stops=[29]
  for i in 0 .. 2 {
    $t = communicate allreduce %x -> %a, %tail -> %b, %x -> %c team=TEAM op=sum
    wait $t
  }
)",
       [](const std::vector<int>& team, int, int64_t i) {
         return sumOver(team, i < 12 ? i : i < 17 ? i - 5 : i - 17);
       }},
      {"SeveralAllgathersInOnePost", R"(
  slot %y: f32[2, 12 * SIZE]
  slot %a: f32[SIZE, 12]
  slot %b: f32[12 * SIZE]
  slot %twice: f32[12]
  slot %row: f32[12 * SIZE]
  slot %flat: f32[12 * SIZE]
  %y = allocate
  %a = allocate
  %twice = allocate
  copy %x -> %twice
  %b = alias %y[1]
  $t = communicate allgather %x -> %a, %twice -> %b team=TEAM
  wait $t
  %row = alias %y[0]
  %flat = alias %a reshape
  copy %flat -> %row
  free %a
  free %twice
)",
       [](const std::vector<int>& team, int, int64_t i) {
         const auto row = static_cast<size_t>(i / kCollectiveCount) % team.size();
         return givenTo(team[row], i % kCollectiveCount);
       }},
      // Only the root allocates the results of both reductions.
      {"SeveralReductionsToTheLastInOnePost", R"(
  slot %y: f32[2, 12]
  slot %a: f32[12]
  slot %b: f32[12]
  slot %to: f32[12]
  %y = allocate
  %to = alias %y[0]
  copy %x -> %to
  %to = alias %y[1]
  copy %x -> %to
  if INDEX == SIZE - 1 {
    %a = allocate
    %b = allocate
  }
  $t = communicate reduce %x -> %a, %x -> %b team=TEAM op=sum root=SIZE - 1
  wait $t
  if INDEX == SIZE - 1 {
    %to = alias %y[0]
    copy %a -> %to
    %to = alias %y[1]
    copy %b -> %to
    free %a
    free %b
  }
)",
       [](const std::vector<int>& team, int me, int64_t i) {
         const bool root = me + 1 == static_cast<int>(team.size());
         const int64_t at = i % kCollectiveCount;
         return root ? sumOver(team, at) : givenTo(team[static_cast<size_t>(me)], at);
       }},
      {"AllToAllVTakesItsCountsFromTheDevice", kUnevenExchange,
       [](const std::vector<int>& team, int me, int64_t i) {
         const float got = exchangedTo(team, me, i);
         // Elements of %y that are not received keep the value of this rank's input.
         return got < 0 ? givenTo(team[static_cast<size_t>(me)], i) : got;
       }},
  };
}

inline std::string replacedIn(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Returns the program after it was printed and parsed again. Its inputs are %x and, for each rank
// of the team, the numbers of elements that this rank sends (%s) and receives (%r).
inline Program programFor(const TeamSetting& setting, const std::string& body) {
  std::string text = "mesh @m = " + setting.mesh +
                     "\nprogram p(%x: f32[12], %s: i64[SIZE], %r: i64[SIZE]) -> (%y) {\n" + body +
                     "}\n";
  text = replacedIn(text, "TEAM", setting.team);
  text = replacedIn(text, "SIZE", std::to_string(setting.members(0).size()));
  text = replacedIn(text, "INDEX", setting.index);
  const Program program = printedAndParsed(programOf(text));
  EXPECT_TRUE(sameProgram(program, programOf(text)));
  return program;
}

inline Tensor countsOn(Device& device, const std::vector<int64_t>& values) {
  HostTensor host(DType::I64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) host.as<int64_t>()[i] = values[i];
  return toDevice(device, device.allocator(), host, denseDesc(DType::I64, host.sizes));
}

inline void runCollective(const TeamSetting& setting, const CollectiveProgram& collective,
                          comm::World& world, Device& device) {
  const int rank = world.rank();
  Executable executable(programFor(setting, collective.body), {&device, &world, nullptr});
  const std::vector<int> team = setting.members(rank);
  const int me = static_cast<int>(std::find(team.begin(), team.end(), rank) - team.begin());
  std::vector<float> x(kCollectiveCount);
  for (int64_t i = 0; i < kCollectiveCount; ++i) x[static_cast<size_t>(i)] = givenTo(rank, i);
  std::vector<int64_t> sends, receives;
  for (int64_t other = 0; other < static_cast<int64_t>(team.size()); ++other) {
    sends.push_back(unevenShare(me, other));
    receives.push_back(unevenShare(other, me));
  }
  const Tensor input = deviceFloats(device, x, {kCollectiveCount});
  const Tensor s = countsOn(device, sends), r = countsOn(device, receives);
  for (int run = 0; run < 3; ++run) {
    const Outputs outputs = executable.run({input, s, r});
    outputs.wait();
    const std::vector<float> got = floatsOf(device, outputs[0]);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i], collective.wanted(team, me, static_cast<int64_t>(i)))
          << collective.name << ", element " << i << " on rank " << rank << " of " << setting.ranks
          << ", team " << setting.team;
    }
  }
  world.barrier();
}

}  // namespace heddle::host::testing
