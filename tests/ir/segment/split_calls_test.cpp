// Tests that only the ops of a library call are segmented again if the sizes of a run do not allow
// the call.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "ir/base/check.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/verify.h"
#include "ir/reference/reference.h"
#include "ir/segment/library_calls.h"
#include "ir/text/fusion_text.h"

namespace heddle::split_calls_test {
namespace {

using Names = std::vector<std::string>;

// Returns a fusion with the forward and the backward of an attention between other kernels. Some of
// the other kernels read only dq. In the text, the last op of dq comes before the last op of dk.
Fusion trainingStep() {
  const std::string text =
      "heddle 1\nfusion f(%a: bf16[h, t, e], %k: bf16[h, s, e], %v: bf16[h, s, e], "
      "%g: bf16[h, t, e], %x: f32[n, m]) {\n"
      "  %q = mul(%a, 0.5)\n"
      "  %y = scaled_dot_product_attention(%q, %k, %v, causal=true)\n"
      "  %f = flip(%x, axes=[1])\n  %w = softmax(%f, axis=1)\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward(%g, %q, %k, %v, causal=true)\n"
      "  %z = add(%y, 1.0)\n  %da = mul(%dq, 0.5)\n  %r = flip(%da, axes=[2])\n"
      "  %u = exp(%r)\n  return %z, %w, %u, %dk, %dv\n}\n";
  return removeDead(parseFusion(text));
}

SegmentOptions options(bool forward, bool backward) {
  SegmentOptions result;
  result.attention = [](const Fusion&, const Attention&) { return std::string(); };
  result.attention_for_sizes = [=](const Fusion&, const Attention& attention) {
    return std::string((attention.backward ? backward : forward) ? "" : "not for these sizes");
  };
  return result;
}

// Returns the texts of the groups for which wanted() returns true. Each text is a fusion, without
// the number of the group.
Names textsOf(const SegmentedFusion& segmented, const std::function<bool(const Group&)>& wanted) {
  Names texts;
  for (const Group& group : segmented.groups) {
    if (!wanted(group)) continue;
    Fusion part = extract(segmented, group);
    part.name = "part";
    texts.push_back(printFusionBody(part));
  }
  return texts;
}

bool isCall(const Group& group) { return group.attention.has_value(); }

// Returns the results of the reference for small sizes.
std::vector<HostTensor> evaluated(const Fusion& fusion) {
  const SizeBindings sizes{{"h", 2}, {"t", 3}, {"s", 4}, {"e", 5}, {"n", 2}, {"m", 3}};
  ReferenceInputs inputs;
  for (ValueId id : fusion.inputs()) {
    const TensorView& type = fusion.tensor(id);
    std::vector<int64_t> extents;
    for (const Size& size : type.sizes()) extents.push_back(size.evaluate(lookupIn(sizes)));
    HostTensor tensor(type.dtype, extents);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.set(i, static_cast<double>((i * 7 + id.number()) % 11) / 8);
    }
    inputs.tensors.emplace(id, std::move(tensor));
  }
  return evaluateReference(fusion, inputs, sizes);
}

void expectSameResults(const Fusion& before, const Fusion& after) {
  verify(after);
  const std::vector<HostTensor> expected = evaluated(before), got = evaluated(after);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].sizes, expected[i].sizes);
    for (int64_t k = 0; k < got[i].numel(); ++k) {
      ASSERT_EQ(toDouble(got[i].at(k)), toDouble(expected[i].at(k))) << "output " << i;
    }
  }
}

// Segments trainingStep() for all sizes, and then splits the calls that are not allowed. `forward`
// and `backward` say which calls are allowed. Checks the properties that hold in all cases.
SegmentedFusion splitFor(bool forward, bool backward) {
  const Fusion fusion = trainingStep();
  const SegmentedFusion all = segmentForAllSizes(fusion, options(forward, backward));
  const SegmentedFusion split = splitCalls(all, options(forward, backward));
  EXPECT_EQ(split.split_calls, (forward ? 0 : 1) + (backward ? 0 : 1));
  expectSameResults(all.fusion, split.fusion);
  // The other groups have the same ops in the same order.
  const Names others = textsOf(all, [](const Group& group) { return !isCall(group); });
  EXPECT_GE(others.size(), 4u);
  Names texts = textsOf(split, [](const Group& group) { return !isCall(group); });
  for (const std::string& text : others) {
    const auto same = std::find(texts.begin(), texts.end(), text);
    EXPECT_NE(same, texts.end()) << text << dumpText(split);
    if (same != texts.end()) texts.erase(same);
  }
  EXPECT_EQ(texts.empty(), split.split_calls == 0);
  // Each expression belongs to the group that lists it, and the groups can run in their order.
  std::set<ValueId> known(split.fusion.inputs().begin(), split.fusion.inputs().end());
  for (size_t g = 0; g < split.groups.size(); ++g) {
    for (ExprId id : split.groups[g].exprs) {
      EXPECT_EQ(split.group_of[id], static_cast<int>(g));
    }
    for (ValueId id : split.groups[g].inputs) {
      EXPECT_TRUE(known.contains(id) || split.fusion.value(id).is_scalar)
          << split.fusion.value(id).name;
    }
    known.insert(split.groups[g].outputs.begin(), split.groups[g].outputs.end());
  }
  return split;
}

const Attention* callOf(const SegmentedFusion& segmented, bool backward) {
  for (const Group& group : segmented.groups) {
    if (isCall(group) && group.attention->backward == backward) return &*group.attention;
  }
  return nullptr;
}

TEST(SplitCalls, AllowedCallsStay) {
  const SegmentedFusion split = splitFor(true, true);
  ASSERT_NE(callOf(split, false), nullptr);
  EXPECT_TRUE(callOf(split, false)->keeps_log_sums);
  ASSERT_NE(callOf(split, true), nullptr);
  EXPECT_NE(callOf(split, true)->forward, kNoValue);
}

TEST(SplitCalls, BackwardAloneIsSplit) {
  const SegmentedFusion split = splitFor(true, false);
  ASSERT_NE(callOf(split, false), nullptr);
  EXPECT_FALSE(callOf(split, false)->keeps_log_sums);
  EXPECT_EQ(callOf(split, true), nullptr);
  EXPECT_EQ(split.notes,
            Names{"attention backward of %dq is not one library call: not for these sizes"});
}

TEST(SplitCalls, ForwardAloneIsSplit) {
  const SegmentedFusion split = splitFor(false, true);
  EXPECT_EQ(callOf(split, false), nullptr);
  ASSERT_NE(callOf(split, true), nullptr);
  EXPECT_EQ(callOf(split, true)->forward, kNoValue);
}

TEST(SplitCalls, BothAreSplit) {
  const SegmentedFusion split = splitFor(false, false);
  EXPECT_EQ(callOf(split, false), nullptr);
  EXPECT_EQ(callOf(split, true), nullptr);
  EXPECT_NE(dumpText(split).find("for other sizes"), std::string::npos) << dumpText(split);
}

// If no sizes allow a call, the ops of the attention share kernels with the other ops, and nothing
// is split.
TEST(SplitCalls, CallThatNoSizesAllowSharesKernelsWithItsNeighbours) {
  SegmentOptions none;
  none.attention = [](const Fusion&, const Attention&) { return std::string("no library"); };
  none.attention_for_sizes = [](const Fusion&, const Attention&) -> std::string {
    ADD_FAILURE() << "asked for an attention that no sizes allow";
    return "";
  };
  const SegmentedFusion segmented = segment(trainingStep(), none);
  EXPECT_EQ(segmented.split_calls, 0);
  EXPECT_LT(segmented.groups.size(), splitFor(false, false).groups.size());
}

}  // namespace
}  // namespace heddle::split_calls_test
