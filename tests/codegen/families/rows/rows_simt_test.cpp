// Runs CUDA kernels of the family of rows on the host and compares them with the reference
// evaluator.
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::rows_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;

constexpr double kRoundings = 64;

std::string softmax(const std::string& dtype) {
  return fmt::format("%x: {}[n, m]) {{ %y = softmax(%x, axis=-1) return %y", dtype);
}

TEST(RowsSimt, SoftmaxIsRightAtTheEdgesOfTiles) {
  Cases cases;
  for (const int64_t n : {1, 3, 130}) {
    for (const int64_t m : {2, 3, 31, 32, 64, 130, 257, 1000, 4096}) {
      if (n * m > 60000) continue;
      for (const char* dtype : {"f32", "bf16"}) {
        cases.add(softmax(dtype), {{{n, m}}}, {{"n", n}, {"m", m}});
      }
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
  expectRight(cases, kRoundings);
}

TEST(RowsSimt, SoftmaxIsRightForAllLayouts) {
  Cases cases;
  for (const int64_t m : {24, 61}) {
    const SizeBindings bound = {{"n", 7}, {"m", m}};
    const std::vector<int64_t> sizes = {7, m};
    for (const char* dtype : {"f16", "f64"}) {
      cases.add(softmax(dtype), {{sizes, {m + 3, 1}, 1}}, bound, {{m + 8, 1}});
      cases.add(softmax(dtype), {{sizes, {0, 1}}}, bound);
      cases.add(softmax(dtype), {{sizes, {1, 7}}}, bound, {{1, 7}});
      cases.add(softmax(dtype), {{sizes, {3 * m, 3}}}, bound);
    }
  }
  expectRight(cases, kRoundings);
}

// Rows begin at unaligned addresses, because their length is odd, or because the tensor begins at
// an unaligned address. The output may have another alignment than the input.
TEST(RowsSimt, RowsAtUnalignedAddressesAreRight) {
  Cases cases;
  for (const int64_t m : {33, 67, 257, 1001}) {
    const SizeBindings bound = {{"n", 9}, {"m", m}};
    const std::vector<int64_t> sizes = {9, m};
    for (const char* dtype : {"f32", "bf16", "u8"}) {
      const std::string text = fmt::format(
          "%x: {0}[n, m], %r: {0}[n, m], %w: {0}[m]) {{ %a = maximum(%x, %r) %s = max(%a, "
          "axes=[1], "
          "keepdim=true) %b = broadcast(%w, axes=[0]) %d = sub(%s, %a) %y = mul(%d, %b) return %y",
          dtype);
      cases.add(text, {{sizes}, {sizes}, {{m}}}, bound);
      cases.add(text, {{sizes, {}, 3}, {sizes, {}, 1}, {{m}, {}, 1}}, bound);
      cases.add(text, {{sizes, {m + 2, 1}}, {sizes, {0, 1}}, {{m}, {0}}}, bound, {{m + 5, 1}});
    }
  }
  cases.add(softmax("bf16"), {{{133, 20003}}}, {{"n", 133}, {"m", 20003}});  // loaded once
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, i + 1 == cases.size() ? 8 : 0), "") << cases.name(i);
  }
}

// The rows need no reduction, or one sweep. There are so many rows that the family of rows accepts
// the kernels.
TEST(RowsSimt, UnalignedRowsOfOneSweepAreRight) {
  Cases cases;
  const SizeBindings bound = {{"n", 44}, {"k", 3}, {"m", 261}};
  const std::vector<int64_t> sizes = {44, 3, 261};
  for (const char* dtype : {"bf16", "f16"}) {
    const std::string text = fmt::format(
        "%x: {0}[n, k, m], %r: {0}[k], %w: {0}[m]) {{ %a = broadcast(%r, axes=[0, 2]) %b = "
        "broadcast(%w, axes=[0, 1]) %s = add(%x, %a) %y = mul(%s, %b) return %y",
        dtype);
    cases.add(text, {{sizes}, {{3}}, {{261}}}, bound);
    cases.add(text, {{sizes, {}, 5}, {{3}}, {{261}, {}, 1}}, bound);
    cases.add(text, {{sizes, {790, 263, 1}, 2}, {{3}, {0}}, {{261}}}, bound);
  }
  cases.add("%x: f32[n, k, m]) { %y = sum(%x, axes=[2]) return %y", {{sizes, {}, 3}}, bound);
  cases.add(
      "%x: bf16[n, k, m]) { %f = cast(%x, dtype=f32) %i = iota(sizes=[m], axis=0) %g = "
      "cast(%i, dtype=f32) %b = broadcast(%g, axes=[0, 1]) %s = sub(%f, %b) %y = cast(%s, "
      "dtype=bf16) return %y",
      {{sizes}}, bound);
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.entry(i), "heddle_rows") << cases.name(i);
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

TEST(RowsSimt, OnlySumsOfRowsStreamTheirLoads) {
  Cases cases;
  cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[1]) return %y", {{{200, 1001}}},
            {{"n", 200}, {"m", 1001}});
  cases.add("%x: bf16[n, m]) { %y = neg(%x) return %y", {{{200, 1001}, {1003, 1}}},
            {{"n", 200}, {"m", 1001}});
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.candidate(i).find("streams"), i == 0 ? 1 : 0) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

// The elements of the rows come from other positions of the input.
TEST(RowsSimt, OneThreadComputesAShortShiftedRow) {
  Cases cases;
  cases.add("%x: bf16[n, 5]) { %p = flip(%x, axes=[0, 1]) %y = neg(%p) return %y", {{{1001, 5}}},
            {{"n", 1001}});
  cases.add("%x: f16[n, 3]) { %p = pad(%x, 1.5, lows=[3, 1], highs=[2, 1]) %y = abs(%p) return %y",
            {{{700, 3}, {}, 1}}, {{"n", 700}});
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.entry(i), "heddle_rows") << cases.name(i);
    EXPECT_EQ(cases.candidate(i).find("threads"), 1) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, 0), "") << cases.name(i);
  }
}

// The rows are too long for the registers of two blocks on a multiprocessor, but two rows fit in
// its shared memory.
TEST(RowsSimt, RowsInSharedMemoryAreRight) {
  Cases cases;
  cases.add(softmax("bf16"), {{{133, 40001}}}, {{"n", 133}, {"m", 40001}});
  cases.add(
      "%x: f32[n, m], %w: f32[m]) { %s = sum(%x, axes=[1], keepdim=true) %c = mul(%s, 5e-05) %d = "
      "sub(%x, %c) %q = mul(%d, %d) %v = sum(%q, axes=[1], keepdim=true) %r = rsqrt(%v) %b = "
      "broadcast(%w, axes=[0]) %p = mul(%d, %r) %y = mul(%p, %b) return %y",
      {{{132, 20000}}, {{20000}}}, {{"n", 132}, {"m", 20000}});
  cases.add("%x: bf16[n, m], %z: f32[n, m]) { %a = mul(%x, %z) %y = softmax(%a, axis=-1) return %y",
            {{{132, 12003}}, {{132, 12003}, {12007, 1}, 1}}, {{"n", 132}, {"m", 12003}});
  for (const int64_t m : {40000, 40001}) {  // all rows share %b, and it is not in shared memory
    cases.add(
        "%x: bf16[n, m], %b: bf16[m]) { %f = cast(%x, dtype=f32) %g = cast(%b, dtype=f32) %r = "
        "broadcast(%g, axes=[0]) %a = add(%f, %r) %s = softmax(%a, axis=-1) %y = cast(%s, "
        "dtype=bf16) return %y",
        {{{132, m}}, {{m}}}, {{"n", 132}, {"m", m}});
  }
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_GT(cases.sharedBytes(i), 0) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

// The rows are read in parts, because a block has no registers for two inputs. A maximum and the
// sum of exponentials are one sweep. Some rows have infinite elements, or only infinite elements.
TEST(RowsSimt, LongRowsOfExponentialsAreRight) {
  Cases cases;
  const KernelChoice one_block{"rows", {{"cluster", 1}}};
  cases.add(
      "%x: f32[n, m], %z: f32[n, m]) { %u = add(%x, %z) %s = abs(%u) %a = log(%s) %y = "
      "softmax(%a, axis=-1) return %y",
      {{{132, 16400}}, {{132, 16400}}}, {{"n", 132}, {"m", 16400}}, {}, 0, &one_block);
  for (const int64_t m : {16400, 16403}) {
    cases.add(
        "%x: f32[n, m], %z: f32[n, m], %r: f32[n]) { %b = broadcast(%r, axes=[1]) %i = mul(%b, "
        "inf) %u = add(%x, %z) %a = add(%u, %i) %y = softmax(%a, axis=-1) return %y",
        {{{132, m}}, {{132, m}}, {{132}}}, {{"n", 132}, {"m", m}}, {}, 0, &one_block);
  }
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto [first, end] = cases.barriers(i);
    EXPECT_EQ(end - first, 1) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

TEST(RowsSimt, EmptyRowsHaveTheResultsOfEmptyReductions) {
  Cases cases;
  cases.add(
      "%x: f32[n, m]) { %s = sum(%x, axes=[1], keepdim=true) %d = sub(%x, %s) %q = mul(%d, %d) "
      "%v = sum(%q, axes=[1]) return %v",
      {{{5, 0}}}, {{"n", 5}, {"m", 0}});
  cases.add(softmax("f32"), {{{0, 7}}}, {{"n", 0}, {"m", 7}});
  expectRight(cases);
}

TEST(RowsSimt, NormsHaveOneLaunchAndStoreStatistics) {
  Cases cases;
  for (const int64_t m : {5, 96, 768, 5000}) {
    const SizeBindings bound = {{"n", 6}, {"m", m}};
    for (const char* dtype : {"f32", "bf16"}) {
      cases.add(fmt::format("%x: {0}[n, m], %w: {0}[m], %b: {0}[m]) {{ %f = cast(%x, dtype=f32) "
                            "%s = sum(%f, axes=[1], keepdim=true) %m = mul(%s, {1}) %d = sub(%f, "
                            "%m) %q = mul(%d, %d) %v = sum(%q, axes=[1], keepdim=true) %e = "
                            "mul(%v, {1}) %a = add(%e, 1e-5) %r = rsqrt(%a) %n = mul(%d, %r) %u = "
                            "broadcast(%w, axes=[0]) %c = broadcast(%b, axes=[0]) %h = mul(%n, %u) "
                            "%g = add(%h, %c) %y = cast(%g, dtype={0}) return %y, %m, %r",
                            dtype, 1.0 / static_cast<double>(m)),
                {{{6, m}}, {{m}}, {{m}}}, bound);
      cases.add(fmt::format("%x: {0}[n, m], %r: {0}[n, m], %s: {0}[n]) {{ %h = add(%x, %r) %a = "
                            "abs(%h) %t = sum(%a, axes=[1]) %u = add(%t, %s) %v = broadcast(%u, "
                            "axes=[1]) %y = div(%h, %v) return %y, %h, %u",
                            dtype),
                {{{6, m}}, {{6, m}}, {{6}}}, bound);
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
  expectRight(cases, 256);
}

// A row consists of two axes, and a parameter has only one of these axes.
TEST(RowsSimt, RowsOfSeveralAxesAreRight) {
  Cases cases;
  for (const int64_t k : {1, 6, 40}) {
    cases.add(
        "%x: f32[n, m, k], %w: f32[m]) { %s = sum(%x, axes=[1, 2], keepdim=true) %d = sub(%x, %s) "
        "%b = broadcast(%w, axes=[0, 2]) %e = mul(%d, %b) %t = max(%e, axes=[1, 2], keepdim=true) "
        "%y = sub(%e, %t) return %y, %t",
        {{{4, 5, k}}, {{5}}}, {{"n", 4}, {"m", 5}, {"k", k}});
  }
  expectRight(cases, kRoundings);
}

// Rows that do not fit in the registers of a block are read once per sweep. Few such rows need
// several launches.
TEST(RowsSimt, LongRowsAreRight) {
  Cases cases;
  cases.add(softmax("f32"), {{{133, 40000}}}, {{"n", 133}, {"m", 40000}});
  cases.add(softmax("f32"), {{{2, 60001}}}, {{"n", 2}, {"m", 60001}});
  cases.add("%x: f32[n, m]) { %y = softmax(%x, axis=0) return %y", {{{9000, 12}}},
            {{"n", 9000}, {"m", 12}});
  cases.compile();
  EXPECT_EQ(cases.stages(0), 1u);
  EXPECT_GT(cases.stages(1), 1u);
  EXPECT_GT(cases.stages(2), 1u);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.run(i, 1, 256), "") << cases.name(i);
  }
}

// The body has 120 ops, so a thread holds few elements at a time.
TEST(RowsSimt, LongBodiesAreRight) {
  Cases cases;
  std::string text = "%x: bf16[n, m]) { %v0 = cast(%x, dtype=f32)";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format(" %u{0} = abs(%v{0}) %v{1} = sub(%u{0}, {2})", i, i + 1, 0.25 * (i % 3));
  }
  text += " %m = max(%v60, axes=[1], keepdim=true) %y = sub(%v60, %m) return %y";
  cases.add(text, {{{3, 1024}}}, {{"n", 3}, {"m", 1024}});
  EXPECT_EQ(cases.stages(0), 1u);
  expectRight(cases);
}

TEST(RowsSimt, IndicesAndRandomWordsAlongRowsAreRight) {
  Cases cases;
  for (const int64_t m : {9, 130}) {
    const SizeBindings bound = {{"n", 5}, {"m", m}};
    cases.add(fmt::format("%x: f32[5, {0}], %s: i64[]) {{ %p = iota(sizes=[5, {0}], axis=0) %r = "
                          "mul(%p, {0}) %q = iota(sizes=[5, {0}], axis=1) %i = add(%r, %q) %w = "
                          "philox32(%s, 9, %i) %f = cast(%w, dtype=f32) %g = mul(%f, "
                          "2.3283064365386963e-10) %h = "
                          "add(%x, %g) %m = max(%h, axes=[1], keepdim=true) %y = sub(%h, %m) "
                          "return %y",
                          m),
              {{{5, m}}, {}}, {});
    cases.add(
        "%x: f32[n, m], %i: i64[n, 1]) { %m = max(%x, axes=[1], keepdim=true) %d = sub(%x, "
        "%m) %e = exp(%d) %s = sum(%e, axes=[1], keepdim=true) %g = take_along_axis(%x, %i, "
        "axis=1) %u = sub(%g, %m) %v = div(%u, %s) %y = div(%e, %s) return %v, %y",
        {{{5, m}}, {{5, 1}}}, bound);
  }
  expectRight(cases, kRoundings);
}

// Adds a kernel that divides the elements of rows by values of the rows. The dividends are
// multiplied by `dividend`, and the divisors by `divisor`. The divisors include 0, infinite,
// subnormal, very small and very large numbers. No finite quotient but 0 is below 2^-100. The
// second output shows the sign of zeros.
void addQuotients(Cases& cases, const char* dividend, const char* divisor) {
  cases.add(fmt::format("%x: f32[n, m], %k: f32[n]) {{ %s = max(%x, axes=[1]) %p = mul(%s, %k) "
                        "%d = mul(%p, {1}) %b = broadcast(%d, axes=[1]) %n = mul(%x, {0}) %y = "
                        "div(%n, %b) %a = abs(%x) %o = add(%a, 1) %z = div(%o, %y) return %y, %z",
                        dividend, divisor),
            {{{40, 150}}, {{40}}}, {{"n", 40}, {"m", 150}});
}

TEST(RowsSimt, QuotientsByRowValuesAreRoundedToNearest) {
  Cases cases;
  for (const char* divisor : {"1", "1e-30", "3e25", "3e27", "inf"}) {
    addQuotients(cases, "-1", divisor);
  }
  expectRight(cases);
}

TEST(RowsSimt, QuotientsBySubnormalRowValuesHaveAnErrorOfAtMostOneUnit) {
  Cases cases;
  for (const char* divisor : {"1e-39", "1e-44"}) addQuotients(cases, "-1e-12", divisor);
  expectRight(cases, 2);  // one unit is two rounding errors
}

TEST(RowsSimt, RowsNeedEachOfTheirBarriers) {
  Cases cases;
  cases.add(softmax("f32"), {{{5, 2000}}}, {{"n", 5}, {"m", 2000}});
  expectRight(cases, kRoundings);
  const auto [first, end] = cases.barriers(0);
  EXPECT_EQ(end - first, 2);
  for (int barrier = first; barrier < end; ++barrier) {
    testing::expectNeeded(cases, 0, barrier, kRoundings);
  }
}

}  // namespace
}  // namespace heddle::codegen::rows_simt_test
