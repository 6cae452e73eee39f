#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/analysis/kernel_rules.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"

namespace heddle::extract_test {
namespace {

// The two index tensors belong to different axes of the kernel.
TEST(Extract, EqualIndexTensorsStayTwoValues) {
  const SegmentedFusion segmented =
      segment(parseFusion("heddle 1 fusion f(%x: f32[4, 4]) {\n"
                          "  %i = iota(sizes=[4], axis=0)\n  %j = iota(sizes=[4], axis=0)\n"
                          "  %a = broadcast(%i, axes=[0])\n  %b = broadcast(%j, axes=[1])\n"
                          "  %c = lt(%a, %b)\n  %y = where(%c, %x, 0.0)\n  return %y\n}\n"));
  ASSERT_EQ(segmented.groups.size(), 1u);
  EXPECT_EQ(kernelRuleViolation(extract(segmented, segmented.groups[0])), "");
}

TEST(Extract, EqualExpressionsAreCopiedOnce) {
  const SegmentedFusion segmented = segment(
      parseFusion("heddle 1 fusion f(%x: bf16[4, 6]) {\n"
                  "  %a = cast(%x, dtype=f32)\n  %b = cast(%x, dtype=f32)\n"
                  "  %r = sum(%a, axes=[1], keepdim=true)\n  %s = sum(%b, axes=[1], keepdim=true)\n"
                  "  %c = sub(%a, %r)\n  %d = mul(%b, %s)\n  return %c, %d\n}\n"));
  ASSERT_EQ(segmented.groups.size(), 1u);
  const Fusion kernel = extract(segmented, segmented.groups[0]);
  EXPECT_EQ(kernel.exprs().size(), 4u);
  EXPECT_EQ(kernel.outputs().size(), 2u);
}

// A flip reads %w at computed indices, so its result can be on either axis of the kernel. The axis
// of an expanded tensor does not follow from its operand.
TEST(Extract, EqualExpressionsOfTwoAxesStayTwoValues) {
  for (const char* op : {"flip(%w, axes=[0])", "pad(%w, lows=[1], highs=[-1])"}) {
    const SegmentedFusion segmented = segment(parseFusion(
        fmt::format("heddle 1 fusion f(%w: f32[n], %x: f32[n, n]) {{\n  %f = {0}\n  %g = {0}\n"
                    "  %b = broadcast(%f, axes=[1])\n  %c = broadcast(%g, axes=[0])\n"
                    "  %z = add(%x, %b)\n  %y = sub(%z, %c)\n  return %y\n}}\n",
                    op)));
    ASSERT_EQ(segmented.groups.size(), 1u) << op;
    EXPECT_EQ(kernelRuleViolation(extract(segmented, segmented.groups[0])), "") << op;
  }
  const SegmentedFusion segmented =
      segment(parseFusion("heddle 1 fusion f(%u: f32[1], %x: f32[4, 4]) {\n"
                          "  %f = expand(%u, sizes=[4])\n  %g = expand(%u, sizes=[4])\n"
                          "  %b = broadcast(%f, axes=[1])\n  %c = broadcast(%g, axes=[0])\n"
                          "  %z = add(%x, %b)\n  %y = sub(%z, %c)\n  return %y\n}\n"));
  ASSERT_EQ(segmented.groups.size(), 1u);
  EXPECT_EQ(kernelRuleViolation(extract(segmented, segmented.groups[0])), "");
}

TEST(Extract, ZerosOfBothSignsStayTwoConstants) {
  const SegmentedFusion segmented =
      segment(parseFusion("heddle 1 fusion f(%x: f32[n]) {\n  %a = mul(%x, 0.0)\n"
                          "  %b = mul(%x, -0.0)\n  return %a, %b\n}\n"));
  ASSERT_EQ(segmented.groups.size(), 1u);
  EXPECT_EQ(extract(segmented, segmented.groups[0]).exprs().size(), 4u);
}

}  // namespace
}  // namespace heddle::extract_test
