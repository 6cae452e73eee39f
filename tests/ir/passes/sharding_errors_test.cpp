// What is wrong with a sharding is said by name, each in its own words.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/passes/pipeline.h"
#include "ir/text/fusion_text.h"

namespace heddle::sharding_errors_test {
namespace {

std::string errorOf(const std::string& text, int64_t job_size = 4) {
  try {
    runPasses(parseFusion("heddle 1\n" + text, "f"), job_size);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string ofInput(const std::string& mesh, const std::string& input, int64_t job_size = 4) {
  return errorOf(mesh + "\nfusion f(" + input + ") {\n  %y = neg(%a)\n  return %y\n}", job_size);
}

void expectParts(const std::string& what, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(what.find(part), std::string::npos) << what;
}

TEST(ShardingErrors, WrongMeshesAreReported) {
  EXPECT_EQ(ofInput("mesh @m = [x=8]", "%a: f32[t] shard(@m, 0: x)"),
            "mesh @m = [x=8] needs 8 ranks, the job has 4");
  EXPECT_EQ(ofInput("mesh @m = [x=2] ranks=[1, 4]", "%a: f32[t] shard(@m, 0: x)"),
            "mesh @m = [x=2] ranks=[1, 4] names rank 4, the job has 4 rank(s)");
  EXPECT_EQ(ofInput("mesh @m = [y=2, x=ranks]", "%a: f32[t] shard(@m, 0: x)", 3),
            "mesh @m = [y=2, x=ranks]: the job has 3 rank(s), not a multiple of 2");
  expectParts(ofInput("mesh @m = [x=2] ranks=[1, 1]", "%a: f32[t] shard(@m, 0: x)"),
              {"f:2:17", "rank 1 is listed twice"});
}

TEST(ShardingErrors, SizesThatDifferBetweenRanksAreReported) {
  const std::string mesh = "mesh @m = [x=2]";
  const std::string end = "' has a value in host programs only";
  expectParts(ofInput(mesh, "%a: f32[2*@m.x]"), {"axis 0 of %a: '@m.x" + end});
  expectParts(ofInput(mesh, "%a: f32[t, rank]"), {"axis 1 of %a: 'rank" + end});
  expectParts(errorOf("fusion f(%a: f32[4]) {\n  %y = slice(%a, starts=[rank], stops=[rank + 1])\n"
                      "  return %y\n}"),
              {"axis 0 of %y: 'rank" + end});
}

TEST(ShardingErrors, WrongAxesAreReported) {
  const std::string mesh = "mesh @m = [x=2]";
  expectParts(ofInput(mesh, "%a: f32[t, h] shard(@m, 0: x, 1: x)"),
              {"f:3:", "mesh axis x is used twice in one sharding"});
  expectParts(ofInput(mesh, "%a: f32[t, h] shard(@m, 0: x, 0: x)"), {"axis 0 is sharded twice"});
  expectParts(ofInput(mesh, "%a: f32[t, h] shard(@m, 0: y)"), {"mesh @m has no axis y"});
  expectParts(ofInput(mesh, "%a: f32[t, h] shard(@m, 2: x)"),
              {"axis 2 is out of range for a tensor of rank 2"});
  expectParts(ofInput(mesh, "%a: i32[t, h] partial(avg: x)"),
              {"%a: i32[t, h]", "partial(avg)", "float"});
}

TEST(ShardingErrors, ShardedReducedAxisIsReported) {
  const std::string head = "mesh @m = [x=2]\nfusion f(%a: f32[t, h]) {\n  %s = sum(%a, axes=[1]";
  expectParts(errorOf(head + ", keepdim=true) shard(@m, 1: x)\n  return %s\n}"),
              {"%s: f32[t, 1]", "axis 1 is reduced to one element and cannot be sharded"});
  expectParts(errorOf(head + ") shard(@m, 1: x)\n  return %s\n}"),
              {"axis 1 is out of range for a tensor of rank 1"});
}

TEST(ShardingErrors, UnevenReshapeIsReported) {
  expectParts(errorOf("mesh @m = [x=4]\nfusion f(%a: f32[10] shard(@m, 0: x)) {\n"
                      "  %r = reshape(%a, sizes=[5, 2])\n  return %r\n}"),
              {"reshape at line 4", "axis 0 of %a, 10 elements",
               "10 does not divide evenly over the 4 devices of @m = [x=4]"});
}

TEST(ShardingErrors, ImpossiblePartialValueIsReported) {
  expectParts(errorOf("mesh @m = [x=2]\nfusion f(%a: f32[t]) {\n"
                      "  %r = set(%a) shard(@m) partial(sum: x)\n  return %r\n}"),
              {"%r at line 4", "no steps lead from shard(@m) to shard(@m) partial(sum: x)"});
}

}  // namespace
}  // namespace heddle::sharding_errors_test
