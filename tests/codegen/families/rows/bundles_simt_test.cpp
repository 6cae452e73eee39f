// Runs CUDA kernels with bundles of rows (codegen/families/rows/bundles.h) on the host and compares
// them with the reference evaluator.
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::bundles_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;

constexpr double kRoundings = 64;

// Returns a softmax along the middle axis.
std::string softmax(const std::string& dtype) {
  return fmt::format("%x: {}[n, m, k]) {{ %y = softmax(%x, axis=1) return %y", dtype);
}

void addSoftmax(Cases& cases, const char* dtype, int64_t n, int64_t m, int64_t k) {
  cases.add(softmax(dtype), {{{n, m, k}}}, {{"n", n}, {"m", m}, {"k", k}});
}

// Returns a layer normalization along the middle axis. It has one weight per element of a row, and
// one weight per row. The statistics are outputs.
std::string norm(const std::string& dtype, int64_t m) {
  return fmt::format(
      "%x: {0}[n, m, k], %w: {0}[m], %b: {0}[k]) {{ %f = cast(%x, dtype=f32) %s = sum(%f, "
      "axes=[1], keepdim=true) %m = mul(%s, {1}) %d = sub(%f, %m) %q = mul(%d, %d) %v = sum(%q, "
      "axes=[1], keepdim=true) %e = mul(%v, {1}) %a = add(%e, 1e-5) %r = rsqrt(%a) %n = mul(%d, "
      "%r) %u = broadcast(%w, axes=[0, 2]) %c = broadcast(%b, axes=[0, 1]) %h = mul(%n, %u) %g = "
      "add(%h, %c) %y = cast(%g, dtype={0}) return %y, %m, %r",
      dtype, 1.0 / static_cast<double>(m));
}

void expectBundles(Cases& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
    EXPECT_EQ(cases.entry(i), "heddle_rows") << cases.name(i);
  }
}

TEST(BundlesSimt, SoftmaxIsRightAtTheEdgesOfTiles) {
  Cases cases;
  for (const int64_t m : {2, 3, 31, 64, 130, 257, 1000}) {
    for (const int64_t k : {2, 3, 8, 9, 33, 64, 100}) {
      if (m * k > 12000) continue;
      addSoftmax(cases, "f32", 3, m, k);
      addSoftmax(cases, "bf16", 2, m, k);
    }
  }
  expectBundles(cases);
  expectRight(cases, kRoundings);
}

TEST(BundlesSimt, SoftmaxIsRightForAllTypesAndLayouts) {
  Cases cases;
  for (const int64_t k : {16, 21}) {
    const SizeBindings bound = {{"n", 3}, {"m", 75}, {"k", k}};
    const std::vector<int64_t> sizes = {3, 75, k};
    for (const char* dtype : {"f64", "f16", "bf16"}) {
      cases.add(softmax(dtype), {{sizes}}, bound);
      cases.add(softmax(dtype), {{sizes, {}, 1}}, bound, {}, 3);
      cases.add(softmax(dtype), {{sizes, {76 * (k + 3), k + 3, 1}, 2}}, bound);
      cases.add(softmax(dtype), {{sizes, {k, 3 * k, 1}}}, bound, {{90 * k, k + 1, 1}});
      cases.add(softmax(dtype), {{sizes, {0, k, 1}}}, bound);
    }
  }
  expectBundles(cases);
  expectRight(cases, kRoundings);
}

TEST(BundlesSimt, NormsHaveOneLaunchAndStoreStatistics) {
  Cases cases;
  for (const int64_t m : {5, 96, 300}) {
    for (const int64_t k : {7, 32, 50}) {
      const SizeBindings bound = {{"n", 4}, {"m", m}, {"k", k}};
      for (const char* dtype : {"f32", "bf16"}) {
        cases.add(norm(dtype, m), {{{4, m, k}}, {{m}}, {{k}}}, bound);
        cases.add(norm(dtype, m), {{{4, m, k}}, {{m}, {}, 1}, {{k}, {}, 1}}, bound, {}, 1);
      }
    }
  }
  expectBundles(cases);
  expectRight(cases, 256);
}

// The elements of a row lie along two axes, and rows lie along three axes.
TEST(BundlesSimt, RowsOfSeveralAxesAreRight) {
  Cases cases;
  for (const int64_t k : {1, 6, 40}) {
    cases.add(
        "%x: f32[a, m, b, n, k], %w: f32[m], %r: f32[a, b, k]) { %s = sum(%x, axes=[1, 3], "
        "keepdim=true) %d = sub(%x, %s) %u = broadcast(%w, axes=[0, 2, 3, 4]) %e = mul(%d, %u) %c "
        "= broadcast(%r, axes=[1, 3]) %f = add(%e, %c) %t = max(%f, axes=[1, 3], keepdim=true) %y "
        "= sub(%f, %t) return %y, %t",
        {{{2, 5, 3, 4, k}}, {{5}}, {{2, 3, k}}},
        {{"a", 2}, {"m", 5}, {"b", 3}, {"n", 4}, {"k", k}});
  }
  addSoftmax(cases, "f32", 1, 50, 37);
  expectRight(cases, kRoundings);
}

// %g has the same elements in all rows of a bundle. %p has one element per row. %q has one element
// for all rows of a bundle.
TEST(BundlesSimt, InputsMayMissAxes) {
  Cases cases;
  for (const int64_t k : {12, 13}) {
    cases.add(
        "%x: bf16[n, m, k], %g: bf16[n, m], %p: bf16[n, k], %q: f32[n]) { %b = broadcast(%g, "
        "axes=[2]) %e = mul(%x, %b) %m = max(%e, axes=[1]) %u = add(%m, %p) %z = broadcast(%u, "
        "axes=[1]) %d = sub(%e, %z) %c = cast(%d, dtype=f32) %r = broadcast(%q, axes=[1, 2]) %y = "
        "mul(%c, %r) return %y, %u",
        {{{3, 50, k}}, {{3, 50}}, {{3, k}}, {{3}}}, {{"n", 3}, {"m", 50}, {"k", k}});
  }
  cases.add("%x: u8[n, m, k]) { %s = max(%x, axes=[1], keepdim=true) %y = sub(%s, %x) return %y",
            {{{3, 50, 21}}}, {{"n", 3}, {"m", 50}, {"k", 21}});
  expectBundles(cases);
  expectRight(cases, kRoundings);
}

TEST(BundlesSimt, LongRowsLieInSharedMemory) {
  Cases cases;
  addSoftmax(cases, "bf16", 1, 3000, 37);
  addSoftmax(cases, "bf16", 1, 3001, 40);
  addSoftmax(cases, "f32", 1, 2500, 19);
  cases.add(
      "%x: bf16[n, m, k], %z: f32[n, m, k]) { %c = cast(%x, dtype=f32) %a = mul(%c, %z) %y = "
      "softmax(%a, axis=1) return %y",
      {{{1, 1000, 18}}, {{1, 1000, 18}, {20000, 20, 1}, 2}}, {{"n", 1}, {"m", 1000}, {"k", 18}});
  expectBundles(cases);
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_GT(cases.sharedBytes(i), 0) << cases.name(i);
  expectRight(cases, kRoundings);
}

// Bundles do not serve these cases: the rows of a sector (32 bytes) do not fit in shared memory,
// there are few blocks, or blocks would access parts of sectors.
TEST(BundlesSimt, VeryLongAndFewRowsNeedSeveralLaunches) {
  Cases cases;
  addSoftmax(cases, "bf16", 1, 9000, 20);
  addSoftmax(cases, "f32", 1, 4500, 64);
  addSoftmax(cases, "f32", 1, 5000, 8);
  addSoftmax(cases, "f32", 9000, 10, 3);  // three rows lie together
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_GT(cases.stages(i), 1u) << cases.name(i);
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(cases.run(i, 1, 256), "") << cases.name(i);
}

TEST(BundlesSimt, EmptyRowsAndNoRowsAreRight) {
  Cases cases;
  cases.add(
      "%x: f32[n, m, k]) { %m = max(%x, axes=[1], keepdim=true) %d = sub(%x, %m) %e = exp(%d) %s "
      "= sum(%e, axes=[1], keepdim=true) %y = div(%e, %s) return %y, %s, %m",
      {{{2, 0, 9}}}, {{"n", 2}, {"m", 0}, {"k", 9}});
  addSoftmax(cases, "f32", 0, 7, 9);
  addSoftmax(cases, "f32", 3, 7, 0);
  EXPECT_EQ(cases.entry(0), "heddle_rows");
  expectRight(cases);
}

TEST(BundlesSimt, IndicesAndRandomWordsAreRight) {
  Cases cases;
  for (const int64_t k : {8, 9}) {
    const SizeBindings bound = {{"n", 3}, {"m", 40}, {"k", k}};
    cases.add(
        fmt::format("%x: f32[3, 40, {0}], %s: i64[]) {{ %p = iota(sizes=[3, 40, {0}], axis=0) %q = "
                    "iota(sizes=[3, 40, {0}], axis=1) %o = iota(sizes=[3, 40, {0}], axis=2) %t = "
                    "mul(%p, 40) %u = add(%t, %q) %v = mul(%u, {0}) %i = add(%v, %o) %w = "
                    "philox32(%s, 9, %i) %f = cast(%w, dtype=f32) %g = mul(%f, "
                    "2.3283064365386963e-10) %h = add(%x, %g) %m = max(%h, axes=[1], keepdim=true) "
                    "%y = sub(%h, %m) return %y",
                    k),
        {{{3, 40, k}}, {}}, {});
    cases.add(
        "%x: f32[n, m, k], %i: i64[n, 1, k]) { %m = max(%x, axes=[1], keepdim=true) %d = sub(%x, "
        "%m) %e = exp(%d) %s = sum(%e, axes=[1], keepdim=true) %g = take_along_axis(%x, %i, "
        "axis=1) %u = sub(%g, %m) %v = div(%u, %s) %y = div(%e, %s) return %v, %y",
        {{{3, 40, k}}, {{3, 1, k}}}, bound);
  }
  expectBundles(cases);
  expectRight(cases, kRoundings);
}

TEST(BundlesSimt, BundlesNeedEachOfTheirBarriers) {
  Cases cases;
  addSoftmax(cases, "f32", 2, 500, 24);
  expectBundles(cases);
  expectRight(cases, kRoundings);
  const auto [first, end] = cases.barriers(0);
  EXPECT_EQ(end - first, 4);
  for (int barrier = first; barrier < end; ++barrier) {
    testing::expectNeeded(cases, 0, barrier, kRoundings);
  }
}

}  // namespace
}  // namespace heddle::codegen::bundles_simt_test
