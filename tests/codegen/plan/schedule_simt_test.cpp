// Tests the number of lanes of CUDA loops, and compares the results with the reference evaluator.
#include "codegen/plan/schedule.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::schedule_simt_test {
namespace {

using testing::Cases;

void expectLanes(Cases& cases, int64_t lanes) {
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.entry(i), "heddle_kernel") << cases.name(i);
    EXPECT_EQ(cases.candidate(i).find("lanes"), lanes) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, 0), "") << cases.name(i);
  }
}

TEST(ScheduleSimt, UnalignedRowsOfTwoByteElementsHaveVectorsOfFour) {
  Cases cases;
  cases.add(
      "%x: bf16[n, 29]) { %p = pad(%x, 1.5, lows=[3, 4], highs=[2, 3]) %y = abs(%p) return %y",
      {{{61, 29}}}, {{"n", 61}}, {{37, 1}});
  cases.add("%x: f16[n, 61]) { %p = flip(%x, axes=[1]) %y = neg(%p) return %y", {{{33, 61}}},
            {{"n", 33}});
  expectLanes(cases, 4);
}

TEST(ScheduleSimt, UnalignedRowsWithAnIndexPerElementHaveVectorsOfTwo) {
  Cases cases;
  cases.add("%x: bf16[c, 87], %i: i32[n, 87]) { %g = gather(%x, %i, axis=0) %y = neg(%g) return %y",
            {{{1, 87}}, {{40, 87}}}, {{"c", 1}, {"n", 40}});
  expectLanes(cases, 2);
}

TEST(ScheduleSimt, AlignedRowsHaveVectorsOfEight) {
  Cases cases;
  cases.add("%x: bf16[n, 64]) { %p = flip(%x, axes=[1]) %y = neg(%p) return %y", {{{33, 64}}},
            {{"n", 33}});
  expectLanes(cases, 8);
}

}  // namespace
}  // namespace heddle::codegen::schedule_simt_test
