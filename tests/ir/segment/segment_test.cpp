#include "ir/segment/segment.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/analysis/kernel_rules.h"
#include "ir/graph/builder.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::segment_test {
namespace {

using Names = std::vector<std::string>;

// The results of each group, by name, with their kind: "kernel: a b".
Names groupsOf(const SegmentedFusion& segmented) {
  Names result;
  for (const Group& group : segmented.groups) {
    std::string text = std::string(name(group.kind)) + ":";
    for (ExprId id : group.exprs) {
      text += " " + segmented.fusion.value(segmented.fusion.expr(id).outputs[0]).name;
    }
    result.push_back(text);
  }
  return result;
}

Names valueNames(const Fusion& fusion, const std::vector<ValueId>& ids) {
  Names result;
  for (ValueId id : ids) result.push_back(fusion.value(id).name);
  return result;
}

SegmentedFusion segmentText(const std::string& text) {
  SegmentedFusion segmented = segment(parseFusion("heddle 1\n" + text));
  for (const Group& group : segmented.groups) {
    Fusion part = extract(segmented, group);
    verify(part);
    EXPECT_EQ(valueNames(part, part.inputs()), valueNames(segmented.fusion, group.inputs));
    EXPECT_EQ(valueNames(part, part.outputs()), valueNames(segmented.fusion, group.outputs));
    if (group.kind == GroupKind::Kernel) {
      EXPECT_EQ(kernelRuleViolation(part), "");
    }
  }
  return segmented;
}

bool anyContains(const Names& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

// A sum of one input and a power of another: nothing connects them, so they are two kernels.
constexpr const char* kSumAndPow = R"(
fusion two(%T4: f32[b, s, h], %T6: f32[b, s, h]) {
  %T10 = pow(%T6, 3.0)
  %T19 = sum(%T4, axes=[0, 1])
  return %T19, %T10
})";

TEST(Segment, UnconnectedSumAndPowAreTwoKernels) {
  SegmentedFusion segmented = segmentText(kSumAndPow);
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: T10", "kernel: T19"}));
  EXPECT_TRUE(anyContains(segmented.groups[0].cuts, "no expression here reads a result"));
}

TEST(Segment, DumpShowsTheWholeFusionOnceWithItsGroups) {
  std::string dump = dumpText(segmentText(kSumAndPow));
  size_t pow = dump.find("[g0]   %T10 = pow(%T6");
  size_t sum = dump.find("[g1]   %T19 = sum(%T4, axes=[0, 1])");
  ASSERT_NE(pow, std::string::npos) << dump;
  ASSERT_NE(sum, std::string::npos) << dump;
  EXPECT_LT(pow, sum);
  EXPECT_NE(dump.find("fusion two(%T4: f32[b, s, h], %T6: f32[b, s, h])"), std::string::npos);
  EXPECT_NE(dump.find("g1: kernel (reduction over [0, 1] of %T4, 1 expressions)"),
            std::string::npos)
      << dump;
  EXPECT_NE(dump.find("writes %T19: f32[h]"), std::string::npos) << dump;
}

// The backward of gelu with the gradient of a bias: one pointwise kernel and one reduction.
TEST(Segment, GeluBackwardAndBiasGradient) {
  SegmentedFusion segmented = segmentText(R"(
fusion grad(%S0: f64, %S1: f64, %S2: f64, %S3: f64,
            %T4: f32[b, s, h], %T5: f32[b, s, h], %T6: f32[b, s, h]) {
  %T8 = mul(%T6, 0.5)
  %T10 = pow(%T6, 3.0)
  %T12 = mul(%T10, 0.044715)
  %T13 = add(%T6, %T12)
  %T15 = mul(%T13, 0.797885)
  %T16 = tanh(%T15)
  %T18 = add(%T16, 1.0)
  %T19 = sum(%T4, axes=[0, 1])
  %T20 = mul(%T5, %T18)
  %T21 = mul(%T5, %T8)
  %T24 = mul(%T16, %T16)
  %T26 = sub(1.0, %T24)
  %T27 = mul(%T21, %T26)
  %T28 = mul(%T27, %S3)
  %T31 = mul(%T28, %S2)
  %T32 = mul(%T31, %S1)
  %T34 = pow(%T6, 2.0)
  %T35 = mul(%T32, %T34)
  %T36 = add(%T28, %T35)
  %T37 = mul(%T20, %S0)
  %T38 = add(%T36, %T37)
  return %T19, %T38
})");
  ASSERT_EQ(segmented.groups.size(), 2u) << dumpText(segmented);
  EXPECT_EQ(groupsOf(segmented)[1], "kernel: T19");
  EXPECT_EQ(segmented.groups[0].exprs.size(), 20u);
  EXPECT_EQ(valueNames(segmented.fusion, segmented.groups[0].inputs),
            (Names{"T6", "T5", "S3", "S2", "S1", "S0"}));
  EXPECT_EQ(valueNames(segmented.fusion, segmented.groups[0].outputs), (Names{"T38"}));
}

// Each reduction ends a pass over the data: max | x - max, exp, sum | divide.
TEST(Segment, SoftmaxIsThreeKernels) {
  SegmentedFusion segmented = segmentText(R"(
fusion softmax(%x: f32[t, h]) {
  %m = max(%x, axes=[1], keepdim=true)
  %d = sub(%x, %m)
  %e = exp(%d)
  %s = sum(%e, axes=[1], keepdim=true)
  %y = div(%e, %s)
  return %y
})");
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: m", "kernel: d e s", "kernel: y"}));
  EXPECT_EQ(valueNames(segmented.fusion, segmented.groups[1].outputs), (Names{"e", "s"}));
  EXPECT_TRUE(anyContains(segmented.groups[0].cuts, "%m goes to g1"));
  EXPECT_TRUE(anyContains(segmented.groups[0].cuts, "a second pass over the data"));
}

TEST(Segment, PointwiseAfterAReductionStaysWithIt) {
  SegmentedFusion segmented = segmentText(R"(
fusion norm(%x: f32[t, h], %w: f32[t]) {
  %q = mul(%x, %x)
  %s = sum(%q, axes=[1])
  %r = rsqrt(%s)
  %y = mul(%r, %w)
  return %y
})");
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: q s r y"}));
}

TEST(Segment, ReductionsOverDifferentAxesAreCut) {
  SegmentedFusion segmented = segmentText(R"(
fusion two(%x: f32[t, h]) {
  %e = exp(%x)
  %a = sum(%e, axes=[0])
  %b = sum(%e, axes=[1])
  return %a, %b
})");
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: e a", "kernel: b"}));
  EXPECT_TRUE(anyContains(segmented.groups[0].cuts, "reduce different axes"));
}

TEST(Segment, MatmulsAndViewsStandAlone) {
  SegmentedFusion segmented = segmentText(R"(
fusion mlp(%x: f32[t, h], %w: f32[h, f], %v: f32[f, h]) {
  %a = matmul(%x, %w)
  %g = silu(%a)
  %b = matmul(%g, %v)
  %p = permute(%b, axes=[1, 0])
  %y = add(%p, 1.0)
  return %y
})");
  EXPECT_EQ(groupsOf(segmented),
            (Names{"library: a", "kernel: g", "library: b", "metadata: p", "kernel: y"}));
  EXPECT_TRUE(anyContains(segmented.groups[1].cuts, "matmul of %b is a library call"));
}

// d would have to run after the matmul and before it.
TEST(Segment, NeverACycleBetweenGroups) {
  SegmentedFusion segmented = segmentText(R"(
fusion cycle(%x: f32[n, n]) {
  %a = exp(%x)
  %m = matmul(%a, %x)
  %d = add(%a, %m)
  return %d
})");
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: a", "library: m", "kernel: d"}));
  EXPECT_TRUE(anyContains(segmented.groups[0].cuts, "another group would stand in between"));
}

TEST(Segment, TwoProducersMeetInOneKernel) {
  SegmentedFusion segmented = segmentText(R"(
fusion meet(%x: f32[n], %y: f32[n]) {
  %a = exp(%x)
  %b = tanh(%y)
  %c = add(%a, %b)
  return %a, %c
})");
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: a b c"}));
  EXPECT_EQ(segmented.groups[0].joins.size(), 2u);
}

// x[i] * x[j]: one kernel would read x along two axes at once.
TEST(Segment, OuterProductOfAValueWithItself) {
  SegmentedFusion segmented = segmentText(R"(
fusion outer(%x: f32[n]) {
  %e = exp(%x)
  %r = broadcast(%e, axes=[0])
  %c = broadcast(%e, axes=[1])
  %y = mul(%r, %c)
  return %y
})");
  EXPECT_GT(segmented.groups.size(), 1u);
}

TEST(Segment, TenThousandExpressionsInGroupsOfBoundedSize) {
  FusionBuilder b("chain");
  ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  ValueId v = x;
  for (int i = 0; i < 10000; ++i) v = b.pointwise("add", {v, x});
  b.output(v);
  Fusion fusion = std::move(b).build();
  SegmentedFusion segmented = segment(fusion);
  EXPECT_EQ(segmented.groups.size(), 40u);  // ceil(10000 / 256)
  EXPECT_TRUE(anyContains(segmented.groups[0].cuts, "the group is full"));
  SegmentedFusion again = segment(fusion);
  EXPECT_EQ(again.group_of, segmented.group_of);
  EXPECT_EQ(dumpText(again), dumpText(segmented));
}

TEST(Segment, ScalarsBelongToTheHost) {
  SegmentedFusion segmented = segmentText(R"(
fusion mean(%x: f32[t, h], %k: f64) {
  %n = size(%x, axis=1)
  %m = mul(%n, %k)
  %s = sum(%x, axes=[1])
  %y = div(%s, %m)
  return %y
})");
  EXPECT_EQ(groupsOf(segmented), (Names{"kernel: s y"}));
  EXPECT_EQ(segmented.group_of, (IdVector<ExprId, int>{-1, -1, 0, 0}));
  EXPECT_EQ(valueNames(segmented.fusion, segmented.groups[0].inputs), (Names{"x", "m"}));
}

TEST(Segment, DumpsForMachines) {
  SegmentedFusion segmented = segmentText(kSumAndPow);
  std::string dot = dumpDot(segmented);
  EXPECT_NE(dot.find("subgraph cluster_1"), std::string::npos);
  EXPECT_NE(dot.find("[label=\"%T19 = sum(%T4, axes=[0, 1])\"]"), std::string::npos) << dot;
  std::string json = dumpJson(segmented);
  EXPECT_NE(json.find("\"kind\": \"kernel\""), std::string::npos);
  EXPECT_NE(json.find("{\"name\": \"T19\", \"type\": \"f32[h]\"}"), std::string::npos) << json;
}

}  // namespace
}  // namespace heddle::segment_test
