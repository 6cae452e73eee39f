// Runs CUDA kernels on the host that reduce rows and columns in one sweep over the elements, and
// compares them with the reference evaluator.
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::columns_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;

constexpr double kRoundings = 512;

// Returns the backward of a norm, with the gradients of the norm's parameters.
std::string backward(const std::string& dtype) {
  return fmt::format(
      "%g: {0}[t, h], %x: {0}[t, h], %w: {0}[h]) {{ %gf = cast(%g, dtype=f32) %xf = cast(%x, "
      "dtype=f32) %wf = cast(%w, dtype=f32) %s = sum(%xf, axes=[1], keepdim=true) %m = mul(%s, "
      "0.001) %d = sub(%xf, %m) %q = mul(%d, %d) %v = sum(%q, axes=[1], keepdim=true) %e = add(%v, "
      "0.5) %r = rsqrt(%e) %n = mul(%d, %r) %u = broadcast(%wf, axes=[0]) %k = mul(%gf, %u) %z = "
      "mul(%k, %n) %t = sum(%z, axes=[1], keepdim=true) %p = mul(%n, %t) %o = sub(%k, %p) %dx = "
      "cast(%o, dtype={0}) %a = mul(%gf, %n) %dwf = sum(%a, axes=[0]) %dbf = sum(%gf, axes=[0]) "
      "%dw = cast(%dwf, dtype={0}) %db = cast(%dbf, dtype={0}) return %dx, %dw, %db",
      dtype);
}

// Sums and maxima of rows and of columns. Several outputs use the statistics of the columns.
constexpr const char* kStatistics =
    "%x: f32[t, h], %a: f32[h]) { %r = sum(%x, axes=[1]) %c = sum(%x, axes=[0]) %m = max(%x, "
    "axes=[0]) %b = add(%c, %a) %d = mul(%b, %m) return %r, %b, %d, %m";

void addCases(Cases& cases, int64_t t, int64_t h) {
  const SizeBindings bound = {{"t", t}, {"h", h}};
  for (const char* dtype : {"f32", "bf16"}) {
    cases.add(backward(dtype), {{{t, h}}, {{t, h}}, {{h}}}, bound);
  }
  cases.add(kStatistics, {{{t, h}}, {{h}}}, bound);
}

// Covers one row per block, several rows per block, threads without a row, and widths that
// are and are not multiples of a vector.
TEST(ColumnsSimt, RowsAndColumnsAreRightAtTheEdgesOfTiles) {
  Cases cases;
  for (const int64_t t : {1, 7, 300}) {
    for (const int64_t h : {1, 3, 8, 33, 64, 264, 1001}) addCases(cases, t, h);
  }
  expectRight(cases, kRoundings);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases.stages(i) != 2) continue;
    EXPECT_EQ(cases.entry(i), "heddle_rows") << cases.name(i);
  }
}

// The backward of a norm takes a launch over the rows, and a short launch that combines the
// columns.
TEST(ColumnsSimt, NormBackwardTakesTwoLaunches) {
  Cases cases;
  for (const int64_t h : {64, 768, 2048}) {
    cases.add(backward("bf16"), {{{40, h}}, {{40, h}}, {{h}}}, {{"t", 40}, {"h", h}});
  }
  expectRight(cases, kRoundings);
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(cases.stages(i), 2u) << cases.name(i);
}

// Covers rows that a block cannot keep in its registers, rows whose elements are not neighbours,
// and misaligned rows.
TEST(ColumnsSimt, OtherLayoutsAreRight) {
  Cases cases;
  cases.add(backward("f32"), {{{3, 40000}}, {{3, 40000}}, {{40000}}}, {{"t", 3}, {"h", 40000}});
  const SizeBindings bound = {{"t", 60}, {"h", 72}};
  cases.add(backward("bf16"), {{{60, 72}, {1, 60}}, {{60, 72}}, {{72}}}, bound);
  cases.add(backward("bf16"), {{{60, 72}, {77, 1}, 3}, {{60, 72}, {}, 1}, {{72}, {}, 1}}, bound);
  cases.add(kStatistics, {{{60, 72}, {2, 120}}, {{72}}}, bound);
  cases.add(kStatistics, {{{60, 72}, {0, 1}}, {{72}, {3}}}, bound);
  expectRight(cases, kRoundings);
}

// Covers the widest rows that a block keeps in its registers, and wider rows.
TEST(ColumnsSimt, LongRowsAreRight) {
  Cases cases;
  for (const int64_t h : {8196, 12288, 16388}) {
    cases.add(backward("f32"), {{{3, h}}, {{3, h}}, {{h}}}, {{"t", 3}, {"h", h}});
  }
  expectRight(cases, kRoundings);
}

// A block that processes several rows loads each row while it processes the row before. Some
// operands have one element per row, some have one element per column, and some have only one
// element.
TEST(ColumnsSimt, BlocksWithSeveralRowsAreRight) {
  Cases cases;
  constexpr int64_t t = 1057;
  for (const int64_t h : {8, 136}) {
    const SizeBindings bound = {{"t", t}, {"h", h}};
    addCases(cases, t, h);
    cases.add(
        "%g: bf16[t, h], %m: f32[t, 1], %w: bf16[1, h], %k: f32[1, 1]) { %f = cast(%g, "
        "dtype=f32) %v = cast(%w, dtype=f32) %d = sub(%f, %m) %e = mul(%d, %v) %n = mul(%e, %k) "
        "%s = sum(%n, axes=[1], keepdim=true) %y = sub(%n, %s) %c = sum(%d, axes=[0]) return %y, "
        "%c",
        {{{t, h}}, {{t, 1}}, {{1, h}}, {{1, 1}}}, bound);
  }
  expectRight(cases, kRoundings);
}

// A sum along rows is an output, and the sums of the columns need it too. The rows are not
// neighbours in memory, so several launches compute the outputs.
TEST(ColumnsSimt, SharedSumsOfRowsCanBeOutputs) {
  Cases cases;
  for (const std::vector<int64_t>& strides :
       {std::vector<int64_t>{64, 1}, std::vector<int64_t>{1, 133}}) {
    cases.add(
        "%g: f32[t, h]) { %r = sum(%g, axes=[1], keepdim=true) %d = sub(%g, %r) %c = sum(%d, "
        "axes=[0]) %q = mul(%g, %g) return %r, %c, %q",
        {{{133, 64}, strides}}, {{"t", 133}, {"h", 64}});
  }
  expectRight(cases, kRoundings);
}

TEST(ColumnsSimt, EmptyRowsAndColumnsAreRight) {
  Cases cases;
  cases.add(kStatistics, {{{0, 5}}, {{5}}}, {{"t", 0}, {"h", 5}});
  cases.add("%x: f32[t, h]) { %r = sum(%x, axes=[1]) %c = sum(%x, axes=[0]) return %r, %c",
            {{{5, 0}}}, {{"t", 5}, {"h", 0}});
  expectRight(cases, kRoundings);
}

// Integers and doubles have accumulators of 8 bytes.
TEST(ColumnsSimt, WideAccumulatorsAreRight) {
  Cases cases;
  for (const char* dtype : {"i32", "f64"}) {
    cases.add(fmt::format("%x: {}[t, h]) {{ %r = max(%x, axes=[1]) %c = sum(%x, axes=[0]) %d = "
                          "min(%x, axes=[0]) return %r, %c, %d",
                          dtype),
              {{{130, 37}}}, {{"t", 130}, {"h", 37}});
  }
  expectRight(cases, kRoundings);
}

// A row consists of two axes, which are neighbours in memory. The sum of the columns keeps both
// axes.
TEST(ColumnsSimt, RowsOfSeveralAxesAreRight) {
  Cases cases;
  cases.add(
      "%x: f32[s, t, k, h]) { %r = sum(%x, axes=[2, 3], keepdim=true) %y = sub(%x, %r) %c = "
      "sum(%y, "
      "axes=[0, 1]) return %y, %c",
      {{{2, 9, 3, 16}}}, {{"s", 2}, {"t", 9}, {"k", 3}, {"h", 16}});
  expectRight(cases, kRoundings);
}

// Some blocks process two rows. Per row, a block combines the accumulators of its threads once or
// three times. If it does so once, a barrier separates the rows. The launch that combines the
// blocks has four barriers.
TEST(ColumnsSimt, RowsOfABlockNeedEachOfTheirBarriers) {
  Cases cases;
  const SizeBindings bound = {{"t", 540}, {"h", 512}};
  cases.add(kStatistics, {{{540, 512}}, {{512}}}, bound);
  cases.add(backward("f32"), {{{540, 512}}, {{540, 512}}, {{512}}}, bound);
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
    const auto [first, end] = cases.barriers(i);
    EXPECT_EQ(end - first, i == 0 ? 6 : 7) << cases.name(i);
    for (int barrier = first; barrier < end; ++barrier) {
      EXPECT_NE(cases.run(i, 1, kRoundings, barrier), "") << "without barrier " << barrier;
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::columns_simt_test
