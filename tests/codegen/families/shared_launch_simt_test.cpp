// Runs CUDA kernels that several independent parts share on the host, and compares them with the
// reference evaluator.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::shared_launch_simt_test {
namespace {

using testing::Cases;
using testing::expectRight;
using testing::Layout;

TEST(SharedLaunchSimt, PartsOfOddSizesAreRight) {
  Cases cases;
  // Two bodies; %z has one axis, %y is one axis in memory. %s is read by two parts.
  const std::string text =
      "%x: f32[a], %y: f32[b, c], %z: f32[d], %s: f32[]) { %p = broadcast(%s, axes=[0]) %u = "
      "mul(%x, %p) %q = broadcast(%s, axes=[0, 1]) %v = mul(%y, %q) %w = neg(%z) return %u, %v, %w";
  for (const auto& [a, b, c, d] : {std::array{1001, 7, 33, 50}, {1, 3, 1, 4099}, {5, 64, 64, 3}}) {
    const SizeBindings sizes = {{"a", a}, {"b", b}, {"c", c}, {"d", d}};
    cases.add(text, {{{a}}, {{b, c}}, {{d}}, {{}}}, sizes);
    // The first part is not aligned, and the second has gaps between its rows.
    cases.add(text, {{{a}, {}, 1}, {{b, c}, {c + 5, 1}}, {{d}}, {{}}}, sizes);
  }
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.stages(i), 1u) << cases.name(i);
    for (uint64_t seed = 0; seed < 2; ++seed) {
      EXPECT_EQ(cases.run(i, seed), "") << cases.name(i) << " seed " << seed;
    }
  }
}

TEST(SharedLaunchSimt, EmptyPartsHaveNoBlocks) {
  Cases cases;
  cases.add("%x: f32[a], %y: bf16[b]) { %u = neg(%x) %v = abs(%y) return %u, %v", {{{0}}, {{77}}},
            {{"a", 0}, {"b", 77}});
  expectRight(cases);
}

// A part with a transposed input and a part with a reduction have launches of their own.
TEST(SharedLaunchSimt, OtherPartsHaveTheirOwnLaunches) {
  Cases cases;
  cases.add(
      "%x: f32[a], %y: f32[b, c], %z: f32[b, c], %w: f32[d]) { %u = neg(%x) %v = sub(%y, %z) %r = "
      "sum(%w, axes=[0]) return %u, %v, %r",
      {{{100}}, {{64, 72}, {1, 64}}, {{64, 72}}, {{300}}},
      {{"a", 100}, {"b", 64}, {"c", 72}, {"d", 300}});
  cases.compile();
  EXPECT_EQ(cases.stages(0), 3u);
  EXPECT_EQ(cases.run(0, 0, 300), "");
}

// 700 parts need more than the largest argument struct, so there are several launches of one
// kernel.
TEST(SharedLaunchSimt, LargeTablesNeedSeveralLaunches) {
  constexpr int kParts = 700;
  std::string inputs;
  std::string body;
  std::string outputs;
  std::vector<Layout> layouts;
  SizeBindings sizes;
  for (int i = 0; i < kParts; ++i) {
    const char* comma = i > 0 ? ", " : "";
    inputs +=
        fmt::format("{}%x{}: f32[n{}], %y{}: f32[n{}], %z{}: f32[n{}]", comma, i, i, i, i, i, i);
    body += fmt::format(" %a{0} = mul(%x{0}, %y{0}) %b{0} = add(%a{0}, %z{0})", i);
    outputs += fmt::format("{}%a{}, %b{}", comma, i, i);
    const int64_t size = i % 13 * 7 + 1;
    sizes[fmt::format("n{}", i)] = size;
    for (int k = 0; k < 3; ++k) layouts.push_back({{size}});
  }
  Cases cases;
  cases.add(inputs + ") {" + body + " return " + outputs, layouts, sizes);
  cases.compile();
  EXPECT_GT(cases.stages(0), 1u);
  EXPECT_LT(cases.text(0).size(), 12000u);
  EXPECT_EQ(cases.run(0, 0), "");
}

}  // namespace
}  // namespace heddle::codegen::shared_launch_simt_test
