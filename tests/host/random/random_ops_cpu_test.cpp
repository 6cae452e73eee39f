// Tests that random ops give the same tensor on several ranks for any sharding.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::random_ops_cpu_test {
namespace {

std::string shardedRandom(const std::string& mesh, const std::string& sharding) {
  return "heddle 1\nmesh @m = " + mesh + "\nfusion f(%x: f32[n, 6] " + sharding +
         ", %seed: i64 = 5, %offset: i64 = 9) with n = 7 {\n"
         "  %y, %mask = dropout(%x, %seed, %offset, p=0.3)\n"
         "  %u = uniform(%x, %seed, 1)\n"
         "  %bits = random_bits(%x, %seed, 2)\n"
         "  %r = randint(%x, %seed, 3, high=1000)\n"
         "  return %y " +
         sharding + ", %mask " + sharding + ", %u " + sharding + ", %bits " + sharding + ", %r " +
         sharding + "\n}\n";
}

struct Case {
  int ranks;
  const char* mesh;
  const char* sharding;
};

TEST(RandomOps, EveryShardingGivesTheSameTensor) {
  const Case cases[] = {{1, "[x=1]", "shard(@m, 0: x)"},
                        {2, "[x=2]", "shard(@m, 0: x)"},
                        {2, "[x=2]", "shard(@m, 1: x)"},
                        {3, "[x=3]", "shard(@m, 0: x)"},
                        {3, "[x=3]", "shard(@m)"},
                        {4, "[y=2, x=2]", "shard(@m, 0: y, 1: x)"},
                        {4, "[y=2, x=2]", "shard(@m, 1: [x, y])"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.mesh) + " " + c.sharding);
    const Fusion fusion = parseFusion(shardedRandom(c.mesh, c.sharding));
    testing::HarnessOptions options;
    options.ranks = c.ranks;
    options.sizes = {{"n", 7}};
    const std::vector<HostTensor> got = testing::runProgram(compile(fusion, c.ranks), options);
    const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(testing::relativeError(got[i], expected[i]), 0) << "output " << i;
    }
  }
}

}  // namespace
}  // namespace heddle::host::random_ops_cpu_test
