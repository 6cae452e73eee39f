// Tests matmul and linear on the CPU device, on one rank and on several.
#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "ir/base/check.h"
#include "tests/host/rank_harness.h"
#include "tests/host/whole/matmul_runs.h"

namespace heddle::host::matmul_cpu_test {
namespace {

using testing::expectedOf;
using testing::expectMatmuls;
using testing::HarnessOptions;
using testing::relativeError;
using testing::runProgram;

TEST(MatmulCpu, EveryCaseMatchesLoops) {
  constexpr DType kDTypes[] = {DType::F32, DType::F64, DType::BF16, DType::I64,
                               DType::I32, DType::I8,  DType::U8};
  expectMatmuls(*makeCpuDevice(), kDTypes);
}

TEST(MatmulCpu, ReluKeepsNan) { testing::expectReluKeepsNan(*makeCpuDevice()); }

// Covers column- and row-parallel weights on 1 to 3 ranks, with even and uneven sizes.
TEST(MatmulCpu, ShardedLinearMatchesTheUnshardedOne) {
  for (const char* weight : {"0: x", "1: x"}) {
    for (const char* activation : {"none", "relu", "gelu_tanh"}) {
      const Fusion fusion = parseFusion(fmt::format(
          "heddle 1 mesh @m = [x=ranks] fusion f(%x: f32[b, t, h], %w: f32[f, h] shard(@m, {}), "
          "%c: f32[f]) {{ %y = linear(%x, %w, %c, activation={}) return %y shard(@m) }}",
          weight, activation));
      for (int ranks = 1; ranks <= 3; ++ranks) {
        HarnessOptions options;
        options.ranks = ranks;
        for (int64_t size : {6, 7}) {
          options.sizes = {{"b", 2}, {"t", 5}, {"h", size}, {"f", size + 6}};
          const auto got = runProgram(compile(fusion, ranks), options);
          const auto expected = expectedOf(fusion, options);
          EXPECT_LT(relativeError(got[0], expected[0]), 2e-6)
              << weight << " " << activation << " " << ranks << " ranks, size " << size;
        }
      }
    }
  }
}

// The relu is computed after the sum over the ranks has wrapped around.
TEST(MatmulCpu, IntegerReluFollowsTheSumOverRanks) {
  const Fusion fusion = parseFusion(
      "heddle 1 mesh @m = [x=2] fusion f(%a: i8[3, 300] shard(@m, 1: x), %w: i8[8, 300] shard(@m, "
      "1: x)) { %y = linear(%a, %w, activation=relu) return %y shard(@m) }");
  HarnessOptions options;
  options.ranks = 2;
  const auto got = runProgram(compile(fusion, 2), options);
  const HostTensor a = randomTensor(DType::I8, {3, 300}, options.seed, "a");
  const HostTensor w = randomTensor(DType::I8, {8, 300}, options.seed, "w");
  int64_t overflows = 0;
  for (int64_t i = 0; i < 24; ++i) {
    int64_t sum = 0;
    for (int64_t k = 0; k < 300; ++k) {
      sum += toInt(a.at(i / 8 * 300 + k)) * toInt(w.at(i % 8 * 300 + k));
    }
    const int64_t wrapped = static_cast<int8_t>(sum);
    overflows += wrapped != sum;
    EXPECT_EQ(toInt(got[0].at(i)), std::max<int64_t>(wrapped, 0)) << i;
  }
  EXPECT_GT(overflows, 0);
}

}  // namespace
}  // namespace heddle::host::matmul_cpu_test
