// Runs outer reductions with shifted columns, and compares the results with the reference
// evaluator.
#include "codegen/plan/shift_columns.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::shift_columns_simt_test {
namespace {

using testing::Cases;
using testing::Layout;

const KernelChoice* shifted() {
  static const std::optional<KernelChoice> choice = parseKernelChoice("loops shifted=1");
  return &*choice;
}

// Runs each case twice: with two orders of the threads.
void expectRightShifts(Cases& cases, double roundings) {
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.run(i, 2 * i, roundings), "") << cases.name(i);
    EXPECT_EQ(cases.run(i, 2 * i + 1, roundings), "") << cases.name(i);
  }
}

void expectShifted(const Cases& cases, bool shifted) {
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.candidate(i).find("shifted"), shifted ? 1 : 0) << cases.name(i);
  }
}

// The widths cover rows that end in each lane, rows of one block and of several blocks, and columns
// that only a shifted vector reaches.
TEST(ShiftColumnsSimt, SumsOfUnalignedRows) {
  Cases cases;
  for (const int64_t width : {17, 18, 19, 20, 21, 22, 23, 57, 61, 121, 249, 250, 513, 4300}) {
    cases.add("%x: bf16[n, m]) { %y = sum(%x, axes=[0]) return %y", {{{300, width}}},
              {{"n", 300}, {"m", width}});
  }
  for (const int64_t width : {9, 10, 11, 29, 61, 125, 127, 333}) {
    cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[0]) return %y", {{{300, width}}},
              {{"n", 300}, {"m", width}});
  }
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

// A choice shifts reductions that are not shifted by default: of few rows, of short rows, and of
// elements of 64 bits.
TEST(ShiftColumnsSimt, AChoiceShiftsColumns) {
  Cases cases;
  for (const auto& [rows, width] : {std::pair{200, 101}, {300, 15}, {40, 333}}) {
    for (const char* dtype : {"bf16", "f64"}) {
      cases.add(fmt::format("%x: {}[n, m]) {{ %y = sum(%x, axes=[0]) return %y", dtype),
                {{{rows, width}}}, {{"n", rows}, {"m", width}}, {}, 0, shifted());
    }
  }
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

// Blocks contain the end of one row and the begin of the next one. These two have different shifts.
// With 8 threads per column, a block has 32 columns.
TEST(ShiftColumnsSimt, SumsOverTheMiddleAxis) {
  Cases cases;
  for (const int64_t width : {17, 61, 93, 250}) {
    cases.add("%x: f16[b, n, m]) { %y = sum(%x, axes=[1]) return %y", {{{3, 259, width}}},
              {{"b", 3}, {"n", 259}, {"m", width}});
    cases.add("%x: f32[b, n, m]) { %y = max(%x, axes=[1]) return %y", {{{5, 259, width}}},
              {{"b", 5}, {"n", 259}, {"m", width}});
  }
  const std::optional<KernelChoice> wide = parseKernelChoice("loops shifted=1 reduce_threads=8");
  for (const int64_t width : {17, 61, 93}) {
    cases.add("%x: f16[b, n, m]) { %y = sum(%x, axes=[1]) return %y", {{{7, 259, width}}},
              {{"b", 7}, {"n", 259}, {"m", width}}, {}, 0, &*wide);
  }
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

// All rows of a thread have the same shift, because the second reduced axis has a multiple of 8
// elements.
TEST(ShiftColumnsSimt, SumsOverTwoAxes) {
  Cases cases;
  cases.add("%x: bf16[a, b, c, d]) { %y = sum(%x, axes=[0, 2]) return %y", {{{9, 3, 32, 37}}},
            {{"a", 9}, {"b", 3}, {"c", 32}, {"d", 37}});
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

TEST(ShiftColumnsSimt, SeveralInputsAndResults) {
  Cases cases;
  const Layout x{{290, 45}};
  const SizeBindings sizes{{"n", 290}, {"m", 45}};
  cases.add(
      "%x: f16[n, m], %g: f16[n, m]) { %p = mul(%x, %g) %y = sum(%p, axes=[0]) %z = sum(%x, "
      "axes=[0]) return %y, %z",
      {x, x}, sizes);
  cases.add(
      "%x: bf16[n, m], %r: f32[n, 1], %s: f32[1, 1]) { %a = mul(%x, %r) %b = add(%a, %s) %y = "
      "sum(%b, axes=[0], keepdim=true) %z = relu(%y) return %z",
      {x, {{290, 1}}, {{1, 1}}}, sizes);
  cases.add("%x: f16[n, m], %g: f32[n, m]) { %p = add(%x, %g) %y = min(%p, axes=[0]) return %y",
            {x, x}, sizes);
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

// The rows have gaps, and the tensor begins at any address. The output begins at any address too.
TEST(ShiftColumnsSimt, RowsWithGaps) {
  Cases cases;
  for (const int64_t shift : {0, 1, 3, 7}) {
    cases.add("%x: bf16[n, m]) { %y = sum(%x, axes=[0]) return %y", {{{270, 43}, {51, 1}, shift}},
              {{"n", 270}, {"m", 43}}, {}, shift);
    cases.add("%x: f32[n, m]) { %y = sum(%x, axes=[0]) return %y", {{{270, 43}, {46, 1}, shift}},
              {{"n", 270}, {"m", 43}}, {}, shift);
  }
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

// Four inputs: threads load fewer rows at once. An input per row may have longer elements.
TEST(ShiftColumnsSimt, ManyInputs) {
  Cases cases;
  const Layout x{{1100, 45}};
  cases.add(
      "%a: bf16[n, m], %b: bf16[n, m], %c: bf16[n, m], %d: bf16[n, m]) { %p = mul(%a, %b) %q = "
      "mul(%c, %d) %s = add(%p, %q) %y = sum(%s, axes=[0]) return %y",
      {x, x, x, x}, {{"n", 1100}, {"m", 45}});
  cases.add("%x: bf16[n, m], %k: f64[n, 1]) { %p = mul(%x, %k) %y = sum(%p, axes=[0]) return %y",
            {x, {{1100, 1}}}, {{"n", 1100}, {"m", 45}});
  expectShifted(cases, true);
  EXPECT_EQ(cases.candidate(0).find("unroll"), 2);
  expectRightShifts(cases, 256);
}

// The partial results are so large that a second launch combines them.
TEST(ShiftColumnsSimt, ASecondLaunchCombinesManyRanges) {
  Cases cases;
  const std::optional<KernelChoice> choice = parseKernelChoice("loops reduce_threads=8 splits=200");
  cases.add("%x: bf16[n, m]) { %y = sum(%x, axes=[0]) return %y", {{{2001, 101}}},
            {{"n", 2001}, {"m", 101}}, {}, 0, &*choice);
  EXPECT_EQ(cases.stages(0), 2u);
  expectShifted(cases, true);
  expectRightShifts(cases, 256);
}

TEST(ShiftColumnsSimt, ChosenParameters) {
  Cases cases;
  for (const char* text :
       {"loops splits=1", "loops splits=7", "loops lanes=4", "loops lanes=2",
        "loops reduce_threads=32", "loops unroll=1 splits=2", "loops reduce_threads=4 lanes=4",
        "loops streams=1", "loops reduce_threads=2", "loops lanes=1",
        "loops reduce_threads=8 splits=100"}) {
    const std::optional<KernelChoice> choice = parseKernelChoice(text);
    ASSERT_TRUE(choice) << text;
    cases.add("%x: bf16[n, m]) { %y = sum(%x, axes=[0]) return %y", {{{300, 101}}},
              {{"n", 300}, {"m", 101}}, {}, 0, &*choice);
  }
  expectShifted(cases, true);
  expectRightShifts(cases, 64);
}

// A choice turns the shift off. The other kernels are not shifted even without a choice, for one of
// these reasons: rows are aligned, or short, or few; the elements have 64 bits; inputs have
// different shifts, or rows of a thread do; an input is the same in all rows; the kernel stores its
// elements; or it uses the index of a column.
TEST(ShiftColumnsSimt, OtherReductionsAreNotShifted) {
  Cases cases;
  const std::string sum = "%x: bf16[n, m]) { %y = sum(%x, axes=[0]) return %y";
  const auto add = [&](int64_t rows, int64_t width, const char* text) {
    const std::optional<KernelChoice> choice = parseKernelChoice(text);
    cases.add(sum, {{{rows, width}}}, {{"n", rows}, {"m", width}}, {}, 0,
              choice ? &*choice : nullptr);
  };
  add(300, 101, "loops shifted=0");
  add(300, 104, "loops shifted=1");
  add(300, 15, "");
  add(200, 101, "");
  cases.add("%x: bf16[n, 45], %w: bf16[1, 45]) { %p = mul(%x, %w) %y = sum(%p, axes=[0]) return %y",
            {{{300, 45}}, {{1, 45}}}, {{"n", 300}});
  cases.add("%x: bf16[n, 45], %w: bf16[n, 45]) { %p = mul(%x, %w) %y = sum(%p, axes=[0]) return %y",
            {{{300, 45}}, {{300, 45}, {46, 1}}}, {{"n", 300}});
  cases.add("%x: bf16[n, 45]) { %p = neg(%x) %y = sum(%p, axes=[0]) return %y, %p", {{{300, 45}}},
            {{"n", 300}});
  cases.add("%x: bf16[a, b, c, d]) { %y = sum(%x, axes=[0, 2]) return %y", {{{13, 3, 31, 37}}},
            {{"a", 13}, {"b", 3}, {"c", 31}, {"d", 37}});
  cases.add("%x: f64[n, 45]) { %y = sum(%x, axes=[0]) return %y", {{{300, 45}}}, {{"n", 300}});
  cases.add(
      "%x: bf16[n, 45]) { %i = iota(sizes=[45], axis=0) %c = cast(%i, dtype=f32) %e = "
      "broadcast(%c, axes=[0]) %p = mul(%x, %e) %y = sum(%p, axes=[0]) return %y",
      {{{300, 45}}}, {{"n", 300}});
  expectShifted(cases, false);
  expectRightShifts(cases, 256);
}

// By default, rows of 16 and of 32 bits per element are shifted.
TEST(ShiftColumnsSimt, UnalignedRowsAreShiftedByDefault) {
  Cases cases;
  for (const char* dtype : {"bf16", "f32"}) {
    for (const int64_t width : {61, 62, 1001}) {
      cases.add(fmt::format("%x: {}[n, m]) {{ %y = sum(%x, axes=[0]) return %y", dtype),
                {{{1200, width}}}, {{"n", 1200}, {"m", width}});
    }
  }
  expectShifted(cases, true);
  expectRightShifts(cases, 256);
}

TEST(ShiftColumnsSimt, ReductionsNeedEachOfTheirBarriers) {
  Cases cases;
  const std::optional<KernelChoice> choice = parseKernelChoice("loops shifted=1 splits=1");
  cases.add("%x: f32[n, 65]) { %y = sum(%x, axes=[0]) %z = max(%x, axes=[0]) return %y, %z",
            {{{1003, 65}}}, {{"n", 1003}}, {}, 0, &*choice);
  expectShifted(cases, true);
  expectRightShifts(cases, 256);
  const auto [first, end] = cases.barriers(0);
  EXPECT_GT(end, first);
  for (int barrier = first; barrier < end; ++barrier) expectNeeded(cases, 0, barrier, 256);
}

// Lanes run along the innermost reduced axis, because the larger input is contiguous there.
TEST(ShiftColumnsSimt, InnerReductionsAreNotShifted) {
  Cases cases;
  cases.add(
      "%x: bf16[a, b, 1, m], %r: bf16[a, b, n, 1]) { %p = mul(%x, %r) %y = sum(%p, axes=[0, 2]) "
      "return %y",
      {{{300, 8, 1, 45}}, {{300, 8, 64, 1}}}, {{"a", 300}, {"b", 8}, {"m", 45}, {"n", 64}});
  cases.compile();
  EXPECT_FALSE(cases.candidate(0).find("shifted"));
  EXPECT_EQ(cases.run(0, 1, 4096), "");
}

}  // namespace
}  // namespace heddle::codegen::shift_columns_simt_test
