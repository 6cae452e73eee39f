// Runs CUDA kernels of rows that begin at unaligned addresses, and compares them with the reference
// evaluator.
#include <string>

#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::row_vectors_simt_test {
namespace {

using testing::Cases;
using testing::Layout;

constexpr double kRoundings = 64;

// The rows have up to one vector more or less than their threads hold.
TEST(RowVectorsSimt, TheLastVectorOfAThreadMayBeTheLastOfTheRow) {
  Cases cases;
  for (const int64_t m : {1023, 1025, 2041, 2047, 2049, 2057, 3071, 3079}) {
    const SizeBindings bound = {{"n", 7}, {"m", m}};
    for (const int64_t shift : {0, 1, 6}) {
      cases.add("%x: bf16[n, m]) { %y = softmax(%x, axis=1) return %y", {{{7, m}, {}, shift}},
                bound);
      cases.add(
          "%x: bf16[n, m], %z: bf16[n, m]) { %a = add(%x, %z) %y = softmax(%a, axis=1) return %y",
          {{{7, m}, {m + 2, 1}, shift}, {{7, m}, {}, 1}}, bound);
    }
  }
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.entry(i), "heddle_rows") << cases.name(i);
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

// Weights have no common alignment with the rows. An even length permits vectors of two elements.
TEST(RowVectorsSimt, RowsOfHalvesWithWeightsHaveShortVectors) {
  Cases cases;
  for (const int64_t m : {301, 302, 2087}) {
    const SizeBindings bound = {{"n", 9}, {"m", m}};
    for (const char* dtype : {"bf16", "f32"}) {
      cases.add(fmt::format("%x: bf16[n, m], %w: {0}[m], %b: {0}[m]) {{ %f = cast(%x, dtype=f32) "
                            "%s = max(%f, axes=[1], keepdim=true) %d = sub(%f, %s) %u = "
                            "broadcast(%w, axes=[0]) %v = broadcast(%b, axes=[0]) %h = mul(%d, %u) "
                            "%g = add(%h, %v) %y = cast(%g, dtype=bf16) return %y",
                            dtype),
                {{{9, m}, {}, m % 2}, {{m}}, {{m}}}, bound);
    }
  }
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.candidate(i).find("vector"), i / 2 == 1 ? 2 : 1) << cases.name(i);
    EXPECT_EQ(cases.run(i, i, kRoundings), "") << cases.name(i);
  }
}

// There are too few rows for all multiprocessors, so several blocks compute each row. Without a
// choice, only longer rows have this layout.
TEST(RowVectorsSimt, SeveralBlocksComputeALongRowOfAPointwiseKernel) {
  Cases cases;
  const KernelChoice looped = {"rows", {{"looped", 1}}};
  constexpr int64_t kLong = 40001;
  const SizeBindings bound = {{"m", kLong}};
  const auto add = [&](const char* text, const std::vector<Layout>& layouts) {
    cases.add(text, layouts, bound, {}, 0, &looped);
  };
  add("%x: bf16[3, m]) { %y = neg(%x) return %y", {{{3, kLong}, {kLong + 2, 1}, 1}});
  add("%x: bf16[3, m]) { %p = pad(%x, 1.5, lows=[1, 0], highs=[0, 0]) %y = abs(%p) return %y",
      {{{3, kLong}}});
  add("%x: f16[2, m], %z: f16[1, m]) { %c = cat(%x, %z, axis=0) %y = relu(%c) return %y",
      {{{2, kLong}, {}, 3}, {{1, kLong}}});
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.entry(i), "heddle_rows") << cases.name(i);
    EXPECT_EQ(cases.run(i, i, 0), "") << cases.name(i);
  }
}

}  // namespace
}  // namespace heddle::codegen::row_vectors_simt_test
