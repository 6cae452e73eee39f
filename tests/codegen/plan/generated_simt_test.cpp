// Runs CUDA kernels on the host that reduce along an axis which no operand has, and compares them
// with the reference evaluator.
#include "codegen/plan/generated.h"
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::generated_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;

constexpr double kRoundings = 512;

// Covers few and many columns, lanes along either axis, and two generated axes (axes that no
// operand has).
TEST(GeneratedSimt, ExpandedOperandsAreRight) {
  Cases cases;
  for (const int64_t n : {1, 2, 5, 33, 257, 5000}) {
    for (const int64_t m : {1, 3, 32, 100}) {
      cases.add(fmt::format("%x: f32[m]) {{ %e = expand(%x, sizes=[{}, m]) %y = max(%e, axes=[0]) "
                            "%s = sum(%e, axes=[0]) return %y, %s",
                            n),
                {{{m}}}, {{"m", m}});
      cases.add(fmt::format("%x: bf16[m, 1]) {{ %e = expand(%x, sizes=[m, {0}]) %f = cast(%e, "
                            "dtype=f32) %y = sum(%f, axes=[0, 1]) return %y",
                            n),
                {{{m, 1}}}, {{"m", m}});
    }
    cases.add(fmt::format("%x: f32[4]) {{ %b = broadcast(%x, axes=[0, 2]) %e = expand(%b, "
                          "sizes=[{0}, 4, 3]) %y = sum(%e, axes=[0, 2]) return %y",
                          n),
              {{{4}}}, {});
  }
  expectRight(cases, kRoundings);
}

TEST(GeneratedSimt, IndicesOfGeneratedAxesAreRight) {
  Cases cases;
  for (const int64_t n : {1, 3, 64, 1000, 30000}) {
    cases.add(fmt::format("%x: i64[3]) {{ %i = iota(sizes=[{0}, 3], axis=0) %b = broadcast(%x, "
                          "axes=[0]) %c = ge(%i, %b) %k = sum(%c, axes=[0]) %p = mul(%i, %b) %s = "
                          "sum(%p, axes=[0]) return %k, %s",
                          n),
              {{{3}}}, {});
    cases.add(fmt::format("%t: f32[7]) {{ %i = iota(sizes=[{}], axis=0) %r = fmod(%i, 7) %g = "
                          "take(%t, %r, axis=0) %y = sum(%g, axes=[0]) return %y",
                          n),
              {{{7}}}, {});
  }
  expectRight(cases, kRoundings);
}

TEST(GeneratedSimt, LongGeneratedAxesAreDividedIntoRanges) {
  Cases cases;
  cases.add("%x: f32[3]) { %e = expand(%x, sizes=[300000, 3]) %y = max(%e, axes=[0]) return %y",
            {{{3}}}, {});
  cases.add(
      "%x: i64[1]) { %i = iota(sizes=[300000], axis=0) %c = ge(%i, %x) %y = sum(%c, axes=[0]) "
      "return %y",
      {{{1}}}, {});
  expectRight(cases, kRoundings);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
    EXPECT_NE(cases.text(i).find("hd::arriveLast("), std::string::npos) << cases.name(i);
  }
}

// The axis has more elements than a number of 32 bits can count.
TEST(GeneratedSimt, VeryLongAxesHaveWideIndices) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[3]) { %e = expand(%x, sizes=[3000000000, 3]) %y = max(%e, "
      "axes=[0]) return %y }",
      "f");
  const TensorDesc x = denseDesc(DType::F32, {3});
  const KernelPlan plan = planKernel(fusion, {x}, {x}, Target::Cuda);
  EXPECT_EQ(plan.stages.size(), 1u);
  EXPECT_NE(plan.source.text.find("typedef long long Index;"), std::string::npos)
      << plan.source.text;
}

// The caller of planKernel() must describe %e, because no operand has its first axis. It need not
// describe the other values with this axis.
TEST(GeneratedSimt, ValuesWithGeneratedAxesAreListed) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[m]) { %e = expand(%x, sizes=[n, m]) %i = iota(sizes=[n, m], "
      "axis=0) %f = cast(%i, dtype=f32) %p = mul(%e, %f) %y = sum(%p, axes=[0]) return %y }",
      "f");
  const std::vector<ValueId> values = generatedValues(fusion);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(fusion.value(values[0]).name, "e");
}

}  // namespace
}  // namespace heddle::codegen::generated_simt_test
