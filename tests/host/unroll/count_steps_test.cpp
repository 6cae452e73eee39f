#include "host/unroll/count_steps.h"

#include <gtest/gtest.h>

#include "tests/host/executable_common.h"

namespace heddle::host::count_steps_test {
namespace {

constexpr int64_t kMost = 1'000'000;

StepCount countOf(const std::string& body, int64_t n = 10) {
  const Program program = testing::programOf(
      "mesh @m = [x=2]\nprogram p(%x: f32[4], %r: i64) -> (%x) {\n  slot %s: i64\n" + body + "}\n");
  Scope scope(program.meshes, {{"n", n}}, 0, 2);
  return countSteps(program, scope, kMost);
}

// Each iteration counts one step plus its body. A loop without iterations counts one step.
int64_t loopOf(int64_t trips, int64_t body) { return trips <= 0 ? 1 : trips * (1 + body); }

TEST(CountSteps, LoopsAreCounted) {
  EXPECT_EQ(countOf("").steps, 0);
  EXPECT_EQ(countOf("%s = evaluate 1\n").steps, 1);
  EXPECT_EQ(countOf("for i in 0 .. 7 {\n%s = evaluate i\n}\n").steps, loopOf(7, 1));
  EXPECT_EQ(countOf("for i in 7 .. 7 {\n%s = evaluate i\n}\n").steps, 1);
  EXPECT_EQ(countOf("for i in 0 .. n {\nfor j in 0 .. 3 {\n%s = evaluate j\n}\n}\n").steps,
            loopOf(10, loopOf(3, 1)));
}

TEST(CountSteps, TripsThatDependOnAnIndexAreCounted) {
  int64_t expected = 0;
  for (int64_t i = 0; i < 10; ++i) expected += 1 + loopOf(i, 1);
  EXPECT_EQ(countOf("for i in 0 .. n {\nfor j in 0 .. i {\n%s = evaluate j\n}\n}\n").steps,
            expected);
  expected = 0;
  for (int64_t i = 0; i < 10; ++i) expected += 2 + (i >= 4 ? 2 : 1);
  EXPECT_EQ(countOf("for i in 0 .. n {\nif i >= 4 {\n%s = evaluate i\n%s = evaluate i\n} else {\n"
                    "%s = evaluate i\n}\n}\n")
                .steps,
            expected);
}

TEST(CountSteps, BothBodiesOfARunTimeBranchCount) {
  EXPECT_EQ(countOf("if %r > 3 {\n%s = evaluate 1\n} else {\n%s = evaluate 2\n%s = evaluate 3\n}\n")
                .steps,
            4);
}

TEST(CountSteps, HugeProgramsAreCountedAtOnce) {
  std::string body;
  for (char index : std::string("abcdef"))
    body += std::string("for ") + index + " in 0 .. 1000 {\n";
  body += "%s = evaluate 1\n}\n}\n}\n}\n}\n}\n";
  int64_t expected = 1;
  for (int i = 0; i < 6; ++i) expected = loopOf(1000, expected);
  EXPECT_EQ(countOf(body).steps, expected);
  EXPECT_FALSE(countOf(body).at_least);
  const StepCount dependent =
      countOf("for i in 0 .. 1000000000000 {\nfor j in 0 .. i {\n%s = evaluate j\n}\n}\n");
  EXPECT_TRUE(dependent.at_least);
  EXPECT_GT(dependent.steps, kMost);
  const StepCount overflowing = countOf(
      "for i in 0 .. 9000000000000000000 {\nfor j in 0 .. 9000000000000000000 {\n"
      "%s = evaluate 1\n}\n}\n");
  EXPECT_TRUE(overflowing.at_least);
  EXPECT_GT(overflowing.steps, kMost);
}

}  // namespace
}  // namespace heddle::host::count_steps_test
