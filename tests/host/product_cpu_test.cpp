// matmul and linear on the CPU device, by one rank and by several.
#include "tests/host/product_runs.h"
#include "tests/host/rank_harness.h"

namespace heddle::host {
namespace {

using testing::expectedOf;
using testing::expectProducts;
using testing::HarnessOptions;
using testing::relativeError;
using testing::runProgram;

TEST(ProductCpu, AgainstLoops) {
  constexpr DType kDTypes[] = {DType::F32, DType::F64, DType::BF16, DType::I64};
  expectProducts(*makeCpuDevice(), kDTypes);
}

TEST(ProductCpu, ReluKeepsNan) { testing::expectReluKeepsNan(*makeCpuDevice()); }

// Column- and row-parallel weights, by 1 to 3 ranks, of sizes that they do and do not divide.
TEST(ProductCpu, ShardedLinearIsTheWholeOne) {
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

}  // namespace
}  // namespace heddle::host
