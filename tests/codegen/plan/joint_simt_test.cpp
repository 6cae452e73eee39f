// Runs CUDA kernels on the host whose pairs of reductions share one sweep over the elements
// (codegen/plan/joint.h), and compares them with the reference evaluator.
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::joint_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;

constexpr double kRoundings = 512;

// Returns a fusion that reduces [n, k, m] along `axes`. It returns statistics only, so one sweep
// suffices.
std::string exponentials(const std::string& dtype, const std::string& axes) {
  return fmt::format(
      "%x: {}[n, k, m]) {{ %f = cast(%x, dtype=f32) %m = max(%f, axes={}, keepdim=true) %d = "
      "sub(%f, %m) %e = exp(%d) %s = sum(%e, axes={}) return %m, %s",
      dtype, axes, axes);
}

// Returns a fusion of a sum %s and of the squares around %c. The text `center` computes %c from %s.
std::string moments(const std::string& dtype, const std::string& axes, const std::string& center) {
  return fmt::format(
      "%x: {}[n, k, m]) {{ %f = cast(%x, dtype=f32) %s = sum(%f, axes={}, keepdim=true) {} %d = "
      "sub(%f, %c) %q = mul(%d, %d) %v = sum(%q, axes={}) return %s, %v",
      dtype, axes, center, axes);
}

constexpr const char* kMean = "%c = mul(%s, 0.0005)";

// Lanes lie along the reduced axis or along a kept axis, whose extent is or is not a multiple of
// the number of lanes. Long rows are divided into ranges. A block
// keeps short rows in its registers.
TEST(JointSimt, StatisticsTakeOneSweepInAllLayouts) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16"}) {
    for (const int64_t m : {1, 8, 37, 64}) {
      for (const char* axes : {"[0, 1]", "[1]", "[0, 2]"}) {
        const SizeBindings bound = {{"n", 3}, {"k", 700}, {"m", m}};
        cases.add(exponentials(dtype, axes), {{{3, 700, m}}}, bound);
        cases.add(moments(dtype, axes, kMean), {{{3, 700, m}}}, bound);
      }
    }
    const SizeBindings bound = {{"n", 1}, {"k", 2}, {"m", 70001}};
    cases.add(exponentials(dtype, "[0, 2]"), {{{1, 2, 70001}}}, bound);
    cases.add(moments(dtype, "[0, 2]", kMean), {{{1, 2, 70001}}}, bound);
    cases.add(moments(dtype, "[2]", kMean), {{{1, 2, 70001}, {}, 1}}, bound);
  }
  expectRight(cases, kRoundings);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_LE(cases.stages(i), 2u) << cases.name(i);
    // Only threads that share a reduction combine their states.
    const bool keeps_rows = cases.entry(i) == "heddle_rows";
    const bool combines = !keeps_rows && cases.candidate(i).find("reduce_threads") != 1;
    EXPECT_EQ(cases.text(i).find("hd::joined") != std::string::npos, combines) << cases.name(i);
  }
}

// The reduced axes [0, 2] are not neighbours in memory, so the last vector along axis 2 is
// incomplete several times in each row. A thread loads several vectors in one step.
TEST(JointSimt, IncompleteVectorsInsideARowAreRight) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16"}) {
    for (const int64_t m : {5, 11, 37}) {
      const int64_t n = 300000 / m;
      const SizeBindings bound = {{"n", n}, {"k", 2}, {"m", m}};
      cases.add(exponentials(dtype, "[0, 2]"), {{{n, 2, m}}}, bound);
      cases.add(moments(dtype, "[0, 2]", kMean), {{{n, 2, m}}}, bound);
    }
  }
  expectRight(cases, kRoundings);
}

// The center of the squares is any function of the sum.
TEST(JointSimt, SquaresAroundAnyCenterAreRight) {
  Cases cases;
  const SizeBindings bound = {{"n", 2}, {"k", 900}, {"m", 5}};
  for (const char* center : {"%c = mul(%s, 0.01)", "%t = abs(%s) %c = sqrt(%t)", "%c = set(%s)"}) {
    cases.add(moments("f32", "[0, 1]", center), {{{2, 900, 5}}}, bound);
    EXPECT_NE(cases.text(cases.size() - 1).find("squaresAround"), std::string::npos) << center;
  }
  expectRight(cases, kRoundings);
}

// The elements are 1000 +- 4, but their variance is as exact as that of elements near 0.
TEST(JointSimt, VariancesFarFromZeroAreExact) {
  Cases cases;
  for (const char* axes : {"[0, 1]", "[0, 2]"}) {
    cases.add(fmt::format("%x: f32[n, k, m]) {{ %y = add(%x, 1000.0) %s = sum(%y, axes={0}, "
                          "keepdim=true) %c = mul(%s, {1}) %d = sub(%y, %c) %q = mul(%d, %d) %v = "
                          "sum(%q, axes={0}) %w = mul(%v, {1}) return %w",
                          axes, axes == std::string("[0, 1]") ? 1.0 / 2048 : 1.0 / 32),
              {{{2, 1024, 16}}}, {{"n", 2}, {"k", 1024}, {"m", 16}});
  }
  expectRight(cases, 64);
}

// Covers infinite elements, rows of -infinity only, and NaN.
TEST(JointSimt, ElementsThatAreNotFiniteAreRight) {
  Cases cases;
  const SizeBindings bound = {{"n", 2}, {"k", 1500}, {"m", 5}};
  for (const char* change :
       {"%r = log(%z)", "%b = abs(%z) %l = log(%b) %r = add(%l, %z)",
        "%b = sqrt(%z) %r = mul(%b, inf)", "%b = abs(%z) %r = mul(%b, -inf)"}) {
    cases.add(fmt::format("%z: f32[n, k, m]) {{ {} %m = max(%r, axes=[0, 1], keepdim=true) %d = "
                          "sub(%r, %m) %e = exp(%d) %s = sum(%e, axes=[0, 1]) return %m, %s",
                          change),
              {{{2, 1500, 5}}}, bound);
    cases.add(fmt::format("%z: f32[n, k, m]) {{ {} %s = sum(%r, axes=[0, 1], keepdim=true) %c = "
                          "mul(%s, 0.1) %d = sub(%r, %c) %q = mul(%d, %d) %v = sum(%q, axes=[0, "
                          "1]) return %s, %v",
                          change),
              {{{2, 1500, 5}}}, bound);
  }
  expectRight(cases, kRoundings);
}

// A sum of exponentials changes its scale only if the maximum grows by much. From row to row, the
// maxima grow by less and by more than this limit, and they also fall. Products of some elements
// with log2(e) overflow. Some elements are the smallest finite numbers, which often stand for
// masked elements.
TEST(JointSimt, ExponentialsOfGrowingAndHugeElementsAreRight) {
  Cases cases;
  const SizeBindings bound = {{"n", 2}, {"k", 1500}, {"m", 5}};
  for (const char* change :
       {"%r = mul(%g, 0.01)", "%r = mul(%g, 2.5)", "%r = mul(%g, 3.1)", "%r = mul(%g, -3.1)",
        "%r = mul(%g, 70)", "%r = mul(%g, -70)", "%r = mul(%g, 2e35)", "%r = mul(%g, -2e35)",
        "%k1 = mul(%g, 0.0) %r = sub(%k1, 3.4028234e38)",
        "%c = lt(%z, 0) %t = mul(%c, -3.4028234e38) %r = add(%g, %t)",
        "%c = lt(%g, 700) %t = mul(%c, -3.4028234e38) %r = add(%z, %t)",
        "%c = gt(%g, 700) %t = mul(%c, 3.4028234e38) %r = add(%z, %t)"}) {
    cases.add(fmt::format("%z: f32[n, k, m]) {{ %i = iota(sizes=[k], axis=0) %h = cast(%i, "
                          "dtype=f32) %g = broadcast(%h, axes=[0, 2]) "
                          "{} %q = add(%r, %z) %m = max(%q, axes=[0, 1], keepdim=true) "
                          "%d = sub(%q, %m) %e = exp(%d) %s = sum(%e, axes=[0, 1]) return %m, %s",
                          change),
              {{{2, 1500, 5}}}, bound);
    EXPECT_NE(cases.text(cases.size() - 1).find("hd::Exponentials"), std::string::npos) << change;
  }
  expectRight(cases, kRoundings);
}

// A reduction without elements must not use the state of a joint reduction (codegen/plan/joint.h),
// because a maximum of -infinity would count as an element.
TEST(JointSimt, EmptyReductionsAreRight) {
  Cases cases;
  const SizeBindings bound = {{"n", 0}, {"k", 9}, {"m", 5}};
  cases.add(exponentials("f32", "[0]"), {{{0, 9, 5}}}, bound);
  cases.add(moments("f32", "[0]", kMean), {{{0, 9, 5}}}, bound);
  expectRight(cases, kRoundings);
}

// Norms and softmax along axes whose elements are not neighbours read x twice.
TEST(JointSimt, NormsAlongMiddleAxesReadTheirInputTwice) {
  Cases cases;
  const SizeBindings bound = {{"n", 2}, {"k", 600}, {"m", 70}};
  cases.add(
      "%x: bf16[n, k, m]) { %f = cast(%x, dtype=f32) %s = sum(%f, axes=[1], keepdim=true) %c = "
      "mul(%s, 0.00166) %d = sub(%f, %c) %q = mul(%d, %d) %v = sum(%q, axes=[1], keepdim=true) %e "
      "= add(%v, 1e-5) %r = rsqrt(%e) %n = mul(%d, %r) %y = cast(%n, dtype=bf16) return %y",
      {{{2, 600, 70}}}, bound);
  cases.add("%x: f32[n, k, m]) { %y = softmax(%x, axis=1) return %y", {{{2, 600, 70}}}, bound);
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_LE(cases.stages(i), 3u) << cases.name(i);
  expectRight(cases, kRoundings);
}

}  // namespace
}  // namespace heddle::codegen::joint_simt_test
