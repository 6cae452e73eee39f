// Runs generated CUDA kernels on the host and compares them with the reference evaluator.
#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::emit_items_cuda_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;
using testing::Layout;

TEST(EmitItemsCudaSimt, PointwiseKernelsAreRightForAllLayouts) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16", "f16", "f64", "i64", "u8"}) {
    const std::string text = fmt::format(
        "%x: {0}[n, m], %z: {0}[n, m]) {{ %p = mul(%x, %z) %y = sub(%p, %x) return %y", dtype);
    for (const int64_t m : {1, 7, 64, 1037}) {
      const std::vector<int64_t> sizes = {5, m};
      const SizeBindings bound = {{"n", 5}, {"m", m}};
      cases.add(text, {{sizes}, {sizes}}, bound);
      cases.add(text, {{sizes, {1, 5}}, {sizes, {1, 5}}}, bound, {{1, 5}});  // columns first
      cases.add(text, {{sizes, {1, 5}}, {sizes}}, bound);                    // mixed orders
      cases.add(text, {{sizes, {m + 3, 1}, 1}, {sizes, {3 * m, 3}}}, bound, {{m + 8, 1}});
      cases.add(text, {{sizes, {0, 1}}, {sizes, {1, 0}}}, bound);  // expanded
    }
  }
  expectRight(cases);
}

TEST(EmitItemsCudaSimt, BroadcastsAndMathFunctionsAreRight) {
  Cases cases;
  cases.add(
      "%x: f8e4m3[n], %z: f8e5m2[n]) { %a = cast(%x, dtype=f32) %b = cast(%z, dtype=f32) %c = "
      "mul(%a, %b) %y = cast(%c, dtype=f8e4m3) %w = cast(%c, dtype=f8e5m2) return %y, %w",
      {{.sizes = {1001}}, {.sizes = {1001}}}, {{"n", 1001}});
  for (const int64_t k : {1, 6, 129}) {
    const SizeBindings bound = {{"n", 3}, {"m", 4}, {"k", k}};
    cases.add(
        "%x: f32[n, m, k], %b: f32[m]) { %c = broadcast(%b, axes=[0, 2]) %y = add(%x, %c) "
        "%e = exp(%y) %t = tanh(%e) %g = erf(%t) return %g, %y",
        {{.sizes = {3, 4, k}}, {.sizes = {4}}}, bound);
    cases.add("%x: bf16[n, m, k]) { %s = sigmoid(%x) %l = log1p(%s) %y = sqrt(%l) return %y",
              {{{3, 4, k}, {k, 3 * k, 1}}}, bound);
  }
  expectRight(cases, 8);
}

// Covers divisors 1 + exp(-x) from 1 to infinity. Some x are infinite or NaN.
TEST(EmitItemsCudaSimt, QuotientsByOnePlusExponentialsAreRight) {
  Cases cases;
  for (const char* dtype : {"f32", "f64", "bf16"}) {
    for (const char* factor : {"1.0", "30.0", "60.0", "1000.0", "inf"}) {
      cases.add(fmt::format("%x: {}[n]) {{ %z = mul(%x, {}) %s = sigmoid(%z) %y = silu(%z) return "
                            "%s, %y",
                            dtype, factor),
                {{{500}}}, {{"n", 500}});
    }
  }
  expectRight(cases, 4);
}

// The indices are -8 to 8, and the axis has 5 elements, so most indices are out of range.
TEST(EmitItemsCudaSimt, IndexedLoadsAreRight) {
  Cases cases;
  for (const int64_t m : {1, 9, 130}) {
    const SizeBindings bound = {{"n", 5}, {"m", m}};
    const std::vector<int64_t> sizes = {5, m};
    for (const char* dtype : {"f32", "bf16", "u8"}) {
      cases.add(fmt::format("%x: {0}[n, m], %i: i64[n, m]) {{ %t = take_along_axis(%x, %i, axis=0) "
                            "%f = flip(%x, axes=[0, 1]) %y = add(%t, %f) return %y",
                            dtype),
                {{sizes, {1, 5}}, {sizes}}, bound);
      cases.add(fmt::format("%x: {0}[n, m]) {{ %p = pad(%x, lows=[1, 2], highs=[0, 3]) %y = "
                            "add(%p, %p) %s = max(%y, axes=[1]) return %s",
                            dtype),
                {{sizes, {}, 1}}, bound);
    }
  }
  expectRight(cases);
}

// A vector of 8 elements lies in one part of a cat, in two parts, or partly outside of the operand
// of a pad. Some vectors begin at unaligned addresses.
TEST(EmitItemsCudaSimt, NeighboursAtShiftedIndicesAreRight) {
  Cases cases;
  for (const auto& [a, b, c] : {std::array{16, 8, 32}, {5, 40, 3}, {1, 1, 1}, {24, 7, 9}}) {
    for (const char* dtype : {"f32", "bf16", "i8"}) {
      const std::string inputs =
          fmt::format("%x: {0}[6, {1}], %y: {0}[6, {2}], %z: {0}[6, {3}])", dtype, a, b, c);
      const std::vector<Layout> dense = {{{6, a}}, {{6, b}}, {{6, c}}};
      cases.add(inputs + " { %c = cat(%x, %y, %z, axis=1) %r = neg(%c) return %r", dense, {});
      cases.add(inputs + " { %c = cat(%x, %y, %z, axis=1) %r = sum(%c, axes=[0]) return %r", dense,
                {});
      for (const char* low : {"8", "3", "-1"}) {
        cases.add(fmt::format("%x: {0}[6, {1}]) {{ %p = pad(%x, lows=[1, {2}], highs=[2, 11]) %r = "
                              "neg(%p) return %r",
                              dtype, a, low),
                  {{{6, a}, {a + 8, 1}, 8}}, {});
      }
    }
  }
  expectRight(cases);
}

TEST(EmitItemsCudaSimt, ReductionsAreRightForAllAxesAndSizes) {
  Cases cases;
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{3, 5, 7}, {1, 61, 1}, {40, 2, 333}, {2, 700, 33}}) {
    const SizeBindings bound = {{"n", sizes[0]}, {"m", sizes[1]}, {"k", sizes[2]}};
    for (const char* axes : {"0", "1", "2", "0, 1", "1, 2", "0, 2", "0, 1, 2"}) {
      for (const char* op : {"sum", "max"}) {
        cases.add(fmt::format("%x: f32[n, m, k]) {{ %y = {}(%x, axes=[{}]) return %y", op, axes),
                  {{sizes}}, bound);
      }
      cases.add(fmt::format("%x: bf16[n, m, k]) {{ %a = abs(%x) %y = sum(%a, axes=[{0}]) %z = "
                            "min(%x, axes=[{0}]) return %y, %z",
                            axes),
                {{sizes, {}, 1}}, bound);
    }
  }
  expectRight(cases);
}

// The reduced axes are divided into ranges. Each block reduces one range, and the last block of a
// group combines the partial results of the group.
void addDivided(Cases& cases) {
  const auto add = [&](const char* ops, int64_t n, int64_t m) {
    cases.add(fmt::format("%x: f32[n, m]) {{ {}", ops), {{.sizes = {n, m}}}, {{"n", n}, {"m", m}});
  };
  add("%y = sum(%x, axes=[0, 1]) return %y", 3, 70001);
  add("%y = sum(%x, axes=[1]) %z = max(%x, axes=[1]) %w = add(%y, 1) return %w, %z", 3, 70001);
  add("%y = sum(%x, axes=[0]) return %y", 40003, 5);
  add("%y = sum(%x, axes=[0]) %z = min(%x, axes=[0]) return %y, %z", 9001, 520);
  add("%i = cast(%x, dtype=i64) %y = sum(%i, axes=[0]) return %y", 40003, 5);
}

TEST(EmitItemsCudaSimt, OneLaunchReducesAndCombinesLongAxes) {
  Cases cases;
  addDivided(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
    EXPECT_NE(cases.text(i).find("hd::arriveLast("), std::string::npos) << cases.name(i);
  }
  expectRight(cases);
}

// Neighbouring elements share a block of random words. If the innermost axis in memory is not the
// last axis, neighbours have distant indices.
TEST(EmitItemsCudaSimt, RandomWordsAreThoseOfTheReference) {
  Cases cases;
  for (const int64_t m : {1, 6, 37, 512}) {
    const std::vector<int64_t> sizes = {5, m};
    for (const std::vector<int64_t>& strides : {std::vector<int64_t>{m, 1}, {1, 5}}) {
      for (const char* dtype : {"i64", "bf16"}) {
        cases.add(fmt::format("%x: {0}[5, {1}], %s: i64[]) {{ %p = iota(sizes=[5, {1}], axis=0) %r "
                              "= mul(%p, {1}) %q = iota(sizes=[5, {1}], axis=1) %i = add(%r, %q) "
                              "%y = philox32(%s, 9, %i) %z = philox64(%s, %y, %i) %w = add(%x, %y) "
                              "return %y, %z, %w",
                              dtype, m),
                  {{sizes, strides}, {}}, {}, {strides, strides, strides});
      }
    }
  }
  expectRight(cases);
}

// The lanes of a vector have consecutive indices. The first index may be in the middle of a block
// of random words.
TEST(EmitItemsCudaSimt, RandomWordsOfAVectorMayBeginInsideABlock) {
  Cases cases;
  for (const char* dtype : {"f32", "bf16"}) {
    for (int first : {-2, 0, 1, 2, 3}) {
      cases.add(fmt::format("%x: {0}[5, 64], %s: i64[]) {{ %p = iota(sizes=[5, 64], axis=0) %r = "
                            "mul(%p, 64) %q = iota(sizes=[5, 64], axis=1) %j = add(%r, %q) %i = "
                            "add(%j, {1}) %y = philox32(%s, 9, %i) %w = philox64(%s, 9, %i) %z = "
                            "add(%x, %y) return %y, %w, %z",
                            dtype, first),
                {{{5, 64}}, {}}, {});
    }
  }
  expectRight(cases);
}

TEST(EmitItemsCudaSimt, ReductionsNeedEachOfTheirBarriers) {
  Cases cases;
  const std::optional<KernelChoice> choice = parseKernelChoice("loops splits=1 shifted=0");
  for (const int64_t axis : {0, 1}) {
    const std::vector<int64_t> sizes =
        axis == 0 ? std::vector<int64_t>{1003, 65} : std::vector<int64_t>{9, 5003};
    cases.add(fmt::format("%x: f32[n, m]) {{ %y = sum(%x, axes=[{0}]) %z = max(%x, axes=[{0}]) "
                          "return %y, %z",
                          axis),
              {{.sizes = sizes}}, {{"n", sizes[0]}, {"m", sizes[1]}}, {}, 0, &*choice);
  }
  expectRight(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto [first, end] = cases.barriers(i);
    EXPECT_GT(end, first) << cases.name(i);
    for (int barrier = first; barrier < end; ++barrier) testing::expectNeeded(cases, i, barrier);
  }
}

// One block would need too much time to combine the partial results.
TEST(EmitItemsCudaSimt, ManyPartialResultsNeedASecondLaunch) {
  Cases cases;
  cases.add("%x: f64[n, m]) { %y = sum(%x, axes=[0]) %z = max(%x, axes=[0]) return %y, %z",
            {{.sizes = {9001, 64}}}, {{"n", 9001}, {"m", 64}});
  EXPECT_EQ(cases.stages(0), 2u);
  EXPECT_EQ(cases.text(0).find("hd::arriveLast("), std::string::npos);
  expectRight(cases);
}

// Each group of blocks has a counter, so a choice cannot divide the elements of more groups.
TEST(EmitItemsCudaSimt, MoreGroupsThanCountersHaveNoRanges) {
  Cases cases;
  const KernelChoice choice{"loops", {{"splits", 2}}};
  const auto add = [&](int64_t n) {
    cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[1]) return %y", {{.sizes = {n, 2100}}},
              {{"n", n}, {"m", 2100}}, {}, 0, &choice);
  };
  add(20);
  add(1025);
  EXPECT_EQ(cases.candidate(0).find("splits"), 2);
  EXPECT_EQ(cases.candidate(1).find("splits"), 1);
  expectRight(cases);
}

// The last barrier of the text makes the threads wait for the number of arrivals. The barrier
// before it matters only if another block runs between two threads of this block. The grid of the
// test does not do this, so the test does not delete this barrier.
TEST(EmitItemsCudaSimt, DividedReductionsNeedTheirBarriers) {
  Cases cases;
  addDivided(cases);
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto [first, end] = cases.barriers(i);
    for (int barrier = first; barrier < end; ++barrier) {
      if (barrier != end - 2) testing::expectNeeded(cases, i, barrier);
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::emit_items_cuda_simt_test
