// Runs CUDA kernels of the family of squares on the host and compares them with the reference
// evaluator.
#include <set>

#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::squares_simt_test {
namespace {

using testing::Cases;

constexpr double kRoundings = 2;

// Expects that every case is one kernel of the family of squares, and that its results are right.
void expectSquares(Cases& cases) {
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.entry(i), "heddle_squares") << cases.name(i);
    for (uint64_t seed = 0; seed < 2; ++seed) {
      EXPECT_EQ(cases.run(i, seed, kRoundings), "") << cases.name(i) << " seed " << seed;
    }
  }
}

// The inputs have the strides of a transposed tensor.
TEST(SquaresSimt, TransposedInputsAreRightForAllSizesAndTypes) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16", "f16", "f64", "i64", "i32", "u8"}) {
    for (const auto& [n, m] :
         {std::pair{64, 128}, {16, 61}, {72, 136}, {65, 17}, {24, 88}, {32, 32}}) {
      cases.add(fmt::format("%x: {0}[n, m], %z: {0}[n, m]) {{ %y = sub(%x, %z) return %y", dtype),
                {{{n, m}, {1, n}}, {{n, m}}}, {{"n", n}, {"m", m}});
    }
  }
  expectSquares(cases);
}

// The outputs have two memory orders. The kernel stores one of them through shared memory. The
// input %x is also contiguous along the axis of the transposed output.
TEST(SquaresSimt, TransposedOutputsAreRightForAllSizesAndTypes) {
  Cases cases;
  for (const std::string dtype : {"f32", "bf16", "f16", "i64", "u8"}) {
    for (const auto& [n, m] : {std::pair{64, 128}, {16, 61}, {65, 17}, {24, 88}}) {
      const SizeBindings bound = {{"n", n}, {"m", m}};
      const std::string text = fmt::format(
          "%x: {0}[n, m], %z: {0}[n, m]) {{ %y = sub(%x, %z) %u = add(%x, %y) return %y, %u",
          dtype);
      // Two tiles of 8-byte elements do not fit in shared memory.
      if (dtype != "i64") {
        cases.add(text, {{{n, m}, {1, n}}, {{n, m}}}, bound, {{m, 1}, {1, n}});
      }
      cases.add(text, {{{n, m}}, {{n, m}}}, bound, {{1, n}, {m, 1}});
    }
  }
  expectSquares(cases);
}

TEST(SquaresSimt, SeveralAxesAndInputsAreRight) {
  Cases cases;
  const SizeBindings bound = {{"a", 3}, {"b", 40}, {"c", 2}, {"d", 72}};
  const std::vector<int64_t> sizes = {3, 40, 2, 72};
  // %x is contiguous along the second axis, %w and %v have fewer axes.
  const std::string text =
      "%x: bf16[a, b, c, d], %z: f32[a, b, c, d], %w: f32[d], %v: f32[b]) { %f = cast(%x, "
      "dtype=f32) %s = add(%f, %z) %p = broadcast(%w, axes=[0, 1, 2]) %q = broadcast(%v, axes=[0, "
      "2, 3]) %t = mul(%s, %p) %y = sub(%t, %q) %g = cast(%y, dtype=bf16) return %y, %g";
  cases.add(text, {{sizes, {5760, 1, 2880, 40}}, {sizes}, {{72}}, {{40}}}, bound);
  cases.add(text, {{sizes, {5760, 1, 2880, 40}, 1}, {sizes, {}, 1}, {{72}, {}, 1}, {{40}}}, bound);
  cases.add(text, {{sizes, {1, 6, 3, 240}}, {sizes}, {{72}, {2}}, {{40}}}, bound);
  // Two inputs are exchanged, and a body uses the index along an axis.
  cases.add(
      "%x: f32[a, b], %z: bf16[a, b]) { %f = cast(%z, dtype=f32) %s = sub(%x, %f) %i = "
      "iota(sizes=[b], axis=0) %g = cast(%i, dtype=f32) %p = broadcast(%g, axes=[0]) %y = mul(%s, "
      "%p) return %y",
      {{{48, 40}, {1, 48}}, {{48, 40}, {1, 50}}}, {{"a", 48}, {"b", 40}});
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

// If an axis fills less than half of a square, the kernel uses smaller squares.
TEST(SquaresSimt, ShortAxesUseSmallSquares) {
  Cases cases;
  for (const auto& [n, m] : {std::pair{31, 23}, {64, 40}, {20, 200}}) {
    cases.add("%x: f32[n, m], %z: f32[n, m]) { %y = sub(%x, %z) return %y",
              {{{n, m}, {1, n}}, {{n, m}}}, {{"n", n}, {"m", m}});
  }
  cases.compile();
  EXPECT_NE(cases.text(0).find("hd::alongOf<1, 32>"), std::string::npos);
  EXPECT_NE(cases.text(1).find("hd::alongOf<4, 64>"), std::string::npos);
  EXPECT_NE(cases.text(2).find("hd::alongOf<4, 32>"), std::string::npos);
}

// The outputs have the strides of a transposed tensor.
TEST(SquaresSimt, TransposedOutputsAreRight) {
  Cases cases;
  cases.add("%x: f32[n, m]) { %y = neg(%x) return %y", {{{70, 40}}}, {{"n", 70}, {"m", 40}},
            {{1, 70}});
  cases.add("%x: bf16[n, m]) { %y = neg(%x) return %y", {{{128, 64}}}, {{"n", 128}, {"m", 64}},
            {{1, 136}});
  expectSquares(cases);
}

TEST(SquaresSimt, SquaresNeedTheirBarrier) {
  Cases cases;
  cases.add("%x: f32[n, m]) { %y = neg(%x) return %y", {{{64, 64}}}, {{"n", 64}, {"m", 64}},
            {{1, 64}});
  expectSquares(cases);
  const auto [first, end] = cases.barriers(0);
  ASSERT_EQ(end - first, 1);
  EXPECT_NE(cases.run(0, 1, kRoundings, first), "");
}

// A square would read the input along its longer stride.
TEST(SquaresSimt, SteppedSlicesAreLoops) {
  Cases cases;
  cases.add("%x: f32[n, m]) { %y = neg(%x) return %y", {{{70, 90}, {300, 3}}},
            {{"n", 70}, {"m", 90}});
  cases.compile();
  EXPECT_EQ(cases.entry(0), "heddle_kernel");
  EXPECT_EQ(cases.run(0, 0, 0), "");
}

}  // namespace
}  // namespace heddle::codegen::squares_simt_test
