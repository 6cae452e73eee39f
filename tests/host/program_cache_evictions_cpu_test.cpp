// Tests that the ranks of a job drop the same programs from their caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::program_cache_evictions_cpu_test {
namespace {

constexpr int kRanks = 3;
constexpr size_t kMostPrograms = 2;

// A reshape gathers its operand if the rows do not divide by the number of ranks. The two numbers
// of rows therefore need four programs.
const char* const kFusion = R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[a, 2] shard(@m, 0: x), %z: f32[b, 2] shard(@m, 0: x)) with a = 3, b = 3 {
  %u = reshape(%x, sizes=[a*2])
  %v = reshape(%z, sizes=[b*2])
  %p = add(%u, %u)
  %q = add(%v, %v)
  return %p, %q
}
)";

using Rows = std::pair<int64_t, int64_t>;   // the sizes a and b
using ProgramKind = std::pair<bool, bool>;  // which of them divide by the number of ranks

// What a cache of kMostPrograms programs should contain: the reference of this test.
class ExpectedCache {
 public:
  void use(const Rows& rows) {
    const ProgramKind kind{rows.first % kRanks == 0, rows.second % kRanks == 0};
    const auto found = std::find(recent_.begin(), recent_.end(), kind);
    if (found != recent_.end()) recent_.erase(found);
    recent_.insert(recent_.begin(), kind);
    plans_[kind].insert(rows);
    if (recent_.size() <= kMostPrograms) return;
    plans_.erase(recent_.back());
    recent_.pop_back();
    ++evictions_;
  }
  bool contains(const Rows& rows) const {
    for (const auto& [kind, plans] : plans_) {
      if (plans.contains(rows)) return true;
    }
    return false;
  }
  int64_t programs() const { return static_cast<int64_t>(recent_.size()); }
  int64_t evictions() const { return evictions_; }

 private:
  std::vector<ProgramKind> recent_;  // most recently used first
  std::map<ProgramKind, std::set<Rows>> plans_;
  int64_t evictions_ = 0;
};

// Returns the block of a rank of a tensor [rows, 2], without data.
Tensor blockOf(int64_t rows, int rank) {
  const int64_t most = (rows + kRanks - 1) / kRanks;
  const int64_t begin = std::min(rows, rank * most);
  Tensor block;
  block.desc = denseDesc(DType::F32, {std::min(most, rows - begin), 2});
  block.desc.global = {rows, 2};
  block.desc.alloc = {most, 2};
  block.desc.offset = {begin, 0};
  return block;
}

// Returns the same block with the values 0, 1, 2, ... of the unsharded tensor in row-major order.
Tensor filledBlockOf(Device& device, int64_t rows, int rank) {
  const TensorDesc desc = blockOf(rows, rank).desc;
  HostTensor values(DType::F32, desc.sizes);
  for (int64_t i = 0; i < values.numel(); ++i) {
    values.as<float>()[i] = static_cast<float>(2 * desc.offset[0] + i);
  }
  return toDevice(device, device.allocator(), values, desc);
}

void expectDoubled(Device& device, const Tensor& output) {
  const std::vector<float> values = testing::floatsOf(device, output);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(2 * (output.desc.offset[0] + static_cast<int64_t>(i))));
  }
}

// All ranks run or prepare the same random sizes. Rank 1 keeps no plans, because its limit of bytes
// is small. This must not change which programs it keeps.
TEST(ProgramCacheEvictions, RanksDropTheSamePrograms) {
  const Fusion fusion = parseFusion(kFusion);
  std::vector<int64_t> plan_evictions(kRanks);
  const auto errors = testing::onRanks(kRanks, [&](comm::World& world) {
    const int rank = world.rank();
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    CompileOptions options;
    options.caches.programs = kMostPrograms;
    if (rank == 1) options.caches.plan_bytes = 1;
    FusionExecutor executor(fusion, {device.get(), &world}, options);
    ExpectedCache expected;
    std::mt19937 random(7);
    for (int step = 0; step < 60; ++step) {
      const Rows rows{2 + static_cast<int64_t>(random() % 5),
                      2 + static_cast<int64_t>(random() % 5)};
      const std::vector<Argument> shapes = {blockOf(rows.first, rank), blockOf(rows.second, rank)};
      if (rank != 1) {
        EXPECT_EQ(executor.isPrepared(shapes), expected.contains(rows)) << "step " << step;
      }
      expected.use(rows);
      if (random() % 4 == 0) {
        executor.prepare(shapes);
      } else {
        const Outputs outputs = executor.run(
            {filledBlockOf(*device, rows.first, rank), filledBlockOf(*device, rows.second, rank)});
        outputs.wait();
        expectDoubled(*device, outputs.tensor("p"));
        expectDoubled(*device, outputs.tensor("q"));
      }
      const Executable::Stats stats = executor.stats();
      EXPECT_EQ(stats.programs, expected.programs()) << "step " << step;
      EXPECT_EQ(stats.program_evictions, expected.evictions()) << "step " << step;
    }
    EXPECT_GT(expected.evictions(), 10);
    plan_evictions[static_cast<size_t>(rank)] = executor.stats().plan_evictions;
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_GT(plan_evictions[1], plan_evictions[0]);
}

}  // namespace
}  // namespace heddle::host::program_cache_evictions_cpu_test
