// Compares the kernels that a SegmentPlanner binds with the kernels that planKernel() plans.
#include "codegen/bind/segment_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/emit/plan_kernel.h"
#include "codegen/frame/argument_value.h"
#include "codegen/kernel.h"
#include "codegen/plan/generated.h"
#include "ir/base/error.h"
#include "ir/graph/fusion.h"
#include "ir/text/fusion_text.h"
#include "ir/types/tensor.h"
#include "tests/sanitized.h"

namespace heddle::codegen::segment_planner_test {
namespace {

// Segments of all kinds. Every size is one of the symbols a, b and c.
const std::vector<std::string> kSegments = {
    "(%x: f32[a, b], %y: f32[a, b]) {\n  %z = add(%x, %y)\n  return %z\n}\n",
    "(%x: f16[a, b, c], %s: f32) {\n  %f = cast(%x, dtype=f32)\n  %z = mul(%f, %s)\n  return "
    "%z\n}\n",
    "(%x: f32[a, b], %y: f32[b]) {\n  %e = broadcast(%y, axes=[0])\n  %z = mul(%x, %e)\n"
    "  %w = neg(%z)\n  return %z, %w\n}\n",
    "(%x: f32[a, b, c]) {\n  %z = sum(%x, axes=[2])\n  return %z\n}\n",
    "(%x: bf16[a, b, c]) {\n  %z = max(%x, axes=[0, 1])\n  return %z\n}\n",
    "(%x: f32[a, b]) {\n  %z = flip(%x, axes=[1])\n  %w = exp(%z)\n  return %w\n}\n",
    "(%x: f32[a, b]) {\n  %i = iota(sizes=[a, b], axis=1)\n  %f = cast(%i, dtype=f32)\n"
    "  %z = add(%x, %f)\n  return %z\n}\n",
    "(%x: f32[a, b]) {\n  %z = sum(%x, axes=[1])\n  %e = broadcast(%z, axes=[1])\n"
    "  %w = sub(%x, %e)\n  return %w\n}\n",
    // softmax, a norm of several results, and the sums of its backward
    "(%x: f32[a, b]) {\n  %m = max(%x, axes=[1])\n  %e = broadcast(%m, axes=[1])\n"
    "  %d = sub(%x, %e)\n  %p = exp(%d)\n  %s = sum(%p, axes=[1])\n"
    "  %t = broadcast(%s, axes=[1])\n  %w = div(%p, %t)\n  return %w\n}\n",
    "(%x: bf16[a, b, c]) {\n  %f = cast(%x, dtype=f32)\n  %s = sum(%f, axes=[0, 1])\n"
    "  %e = broadcast(%s, axes=[0, 1])\n  %d = sub(%f, %e)\n  %q = mul(%d, %d)\n"
    "  %v = sum(%q, axes=[0, 1])\n  %u = broadcast(%v, axes=[0, 1])\n  %w = mul(%d, %u)\n"
    "  return %w, %s\n}\n",
    "(%x: f32[a, b], %g: f32[a, b]) {\n  %q = mul(%x, %g)\n  %s = sum(%q, axes=[1])\n"
    "  %e = broadcast(%s, axes=[1])\n  %d = sub(%g, %e)\n  %r = mul(%d, %x)\n"
    "  %c = sum(%r, axes=[0])\n  %k = sum(%g, axes=[0])\n  return %d, %c, %k\n}\n",
    // a width that only a run knows
    "(%x: f32[a, b]) {\n  %p = pad(%x, lows=[0, c], highs=[0, 2])\n  %z = neg(%p)\n"
    "  return %z\n}\n",
    // generated axes
    "(%x: f32[a]) {\n  %e = expand(%x, sizes=[b, a])\n  %i = iota(sizes=[b, a], axis=0)\n"
    "  %f = cast(%i, dtype=f32)\n  %m = mul(%e, %f)\n  %z = max(%m, axes=[0])\n"
    "  %t = neg(%x)\n  %w = add(%z, %t)\n  return %w\n}\n",
    // independent parts
    "(%x: f32[a], %y: f32[b], %z: f32[c], %m: f32[a, b]) {\n  %u = neg(%x)\n  %v = neg(%y)\n"
    "  %w = exp(%z)\n  %s = sum(%m, axes=[1])\n  return %u, %v, %w, %s\n}\n",
    "(%x: f32[a, b], %y: f32[b, c], %z: bf16[c, a]) {\n  %u = neg(%x)\n  %v = neg(%y)\n"
    "  %w = exp(%z)\n  return %u, %v, %w\n}\n",
    "(%x: u8[a, b]) {\n  %f = cast(%x, dtype=f32)\n  %z = sum(%f, axes=[0])\n  return %z\n}\n",
    // rows along a middle axis
    "(%x: bf16[a, b, c]) {\n  %m = max(%x, axes=[1], keepdim=true)\n  %d = sub(%x, %m)\n"
    "  return %d, %m\n}\n",
};

class RandomShapes {
 public:
  explicit RandomShapes(uint32_t seed) : random_(seed) {}

  void next() {
    // Some extents are so large that indices need 64 bits or that a reduction is split.
    static constexpr int64_t kExtents[] = {0,  1,  2,   3,    7,    16,    17,
                                           64, 96, 200, 1000, 4096, 40000, 100000};
    for (const char* symbol : {"a", "b", "c"}) sizes_[symbol] = kExtents[random_() % 14];
  }

  TensorDesc denseDescOf(const Value& value) const {
    std::vector<int64_t> sizes;
    for (const IterDomain& axis : value.tensor.domain) {
      sizes.push_back(axis.extent.evaluate(lookupIn(sizes_)));
    }
    return denseDesc(value.tensor.dtype, sizes);
  }

  // Returns a descriptor with a random order of axes, and sometimes with gaps.
  TensorDesc descOf(const Value& value) {
    TensorDesc desc = denseDescOf(value);
    AxisOrder order = rowMajor(desc.rank());
    if (random_() % 3 == 0) std::shuffle(order.begin(), order.end(), random_);
    desc.strides = stridesFor(desc.alloc, order);
    if (random_() % 4 == 0) {
      for (int64_t& stride : desc.strides) stride *= 2;
    }
    return desc;
  }

  int64_t valueOf(const Size& size) const { return size.evaluate(lookupIn(sizes_)); }

  int32_t alignment() { return random_() % 4 == 0 ? 4 : kFullAlignment; }

 private:
  std::mt19937 random_;
  SizeBindings sizes_;
};

std::vector<TensorDesc> descsOf(const Fusion& segment, const std::vector<ValueId>& values,
                                RandomShapes& shapes) {
  std::vector<TensorDesc> descs;
  for (ValueId id : values) descs.push_back(shapes.descOf(segment.value(id)));
  return descs;
}

class SegmentPlanners : public ::testing::TestWithParam<Target> {};

TEST_P(SegmentPlanners, BoundKernelsEqualPlannedKernels) {
  for (size_t s = 0; s < kSegments.size(); ++s) {
    const Fusion segment = parseFusion("heddle 1\nfusion f" + kSegments[s]);
    SegmentPlanner planner(segment, GetParam());
    std::map<int64_t, KernelSource> sources;  // by form
    RandomShapes shapes(static_cast<uint32_t>(s));
    int64_t hits = 0;
    for (int i = 0; i < heddle::testing::casesOf(400, 100); ++i) {
      shapes.next();
      const std::vector<TensorDesc> inputs = descsOf(segment, segment.inputs(), shapes);
      const std::vector<TensorDesc> outputs = descsOf(segment, segment.outputs(), shapes);
      std::vector<int32_t> alignments;
      for (size_t k = 0; k < inputs.size() + outputs.size(); ++k) {
        alignments.push_back(shapes.alignment());
      }
      RunSizes run;
      for (ValueId id : planner.analysis().generated) {
        run.generated.push_back(shapes.denseDescOf(segment.value(id)));
      }
      for (const Size& width : planner.analysis().widths) {
        run.widths.push_back(shapes.valueOf(width));
      }
      std::vector<StageLayout> layouts;
      const KernelPlan expected =
          planKernel(segment, inputs, outputs, GetParam(), alignments, run, nullptr, &layouts);
      const SegmentPlanner::Operands operands{inputs, outputs, alignments, run};
      const auto bound = planner.bind(operands);
      if (!bound) {
        const auto form = planner.add(operands, expected, std::move(layouts));
        if (form) sources.try_emplace(*form, expected.source);
        continue;
      }
      ASSERT_EQ(bound->plan.stages, expected.stages) << kSegments[s] << i;
      ASSERT_EQ(bound->plan.workspace_bytes, expected.workspace_bytes) << kSegments[s] << i;
      if (bound->form == SegmentPlanner::kNone) continue;
      ASSERT_EQ(sources.at(bound->form), expected.source) << kSegments[s] << i;
      ++hits;
    }
    EXPECT_GT(hits, heddle::testing::casesOf(5, 0)) << kSegments[s];
  }
}

// SegmentPlanner::add() checks the planner: it compares the numbers of the planner with the plan of
// each candidate.
TEST_P(SegmentPlanners, CandidatesOfRandomShapesAgree) {
  for (size_t s = 0; s < kSegments.size(); ++s) {
    const Fusion segment = parseFusion("heddle 1\nfusion f" + kSegments[s]);
    const Analysis analysis = analyze(segment);
    RandomShapes shapes(static_cast<uint32_t>(s) + 100);
    for (int i = 0; i < heddle::testing::casesOf(30, 8); ++i) {
      shapes.next();
      const std::vector<TensorDesc> inputs = descsOf(segment, segment.inputs(), shapes);
      const std::vector<TensorDesc> outputs = descsOf(segment, segment.outputs(), shapes);
      std::vector<int32_t> alignments;
      for (size_t k = 0; k < inputs.size() + outputs.size(); ++k) {
        alignments.push_back(shapes.alignment());
      }
      RunSizes run;
      for (ValueId id : analysis.generated) {
        run.generated.push_back(shapes.denseDescOf(segment.value(id)));
      }
      for (const Size& width : analysis.widths) run.widths.push_back(shapes.valueOf(width));
      SegmentPlanner planner(segment, GetParam());
      for (const Candidate& each :
           candidates(segment, inputs, outputs, GetParam(), alignments, run, &analysis)) {
        std::vector<StageLayout> layouts;
        const KernelPlan plan = planKernel(segment, inputs, outputs, GetParam(), alignments, run,
                                           &analysis, &layouts, &each.choice);
        EXPECT_EQ(plan.stages, each.plan.stages) << kSegments[s] << i << each.plan.candidate;
        const SegmentPlanner::Operands operands{inputs, outputs, alignments, run, &each.choice};
        const auto form = planner.add(operands, plan, std::move(layouts));
        EXPECT_EQ(form.has_value(), !plan.stages.empty()) << each.plan.candidate;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SegmentPlanners, ::testing::Values(Target::Cpp, Target::Cuda),
                         [](const auto& info) {
                           return info.param == Target::Cpp ? "Cpp" : "Cuda";
                         });

TEST(SegmentPlanner, NewExtentsNeedNoText) {
  const Fusion segment = parseFusion("heddle 1\nfusion f" + kSegments[0]);
  SegmentPlanner planner(segment, Target::Cpp);
  const std::vector<TensorDesc> small(2, denseDesc(DType::F32, {8, 64}));
  const std::vector<TensorDesc> large(2, denseDesc(DType::F32, {24, 32}));
  const std::vector<TensorDesc> small_output{small[0]}, large_output{large[0]};
  EXPECT_FALSE(planner.bind({small, small_output, {}, {}}));
  std::vector<StageLayout> layouts;
  const KernelPlan plan =
      planKernel(segment, small, small_output, Target::Cpp, {}, {}, nullptr, &layouts);
  planner.add({small, small_output, {}, {}}, plan, std::move(layouts));
  const auto bound = planner.bind({large, large_output, {}, {}});
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->plan.stages, planKernel(segment, large, large_output, Target::Cpp).stages);
}

// The rows lie along a middle axis. bind() gets other numbers of rows and elements than add().
TEST_P(SegmentPlanners, NewExtentsOfBundlesNeedNoText) {
  const Fusion segment = parseFusion(
      "heddle 1\nfusion f(%x: f32[a, b, c]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n");
  SegmentPlanner planner(segment, GetParam());
  const std::vector<TensorDesc> first{denseDesc(DType::F32, {4, 250, 64})};
  const std::vector<TensorDesc> second{denseDesc(DType::F32, {9, 243, 64})};
  std::vector<StageLayout> layouts;
  const KernelPlan plan = planKernel(segment, first, first, GetParam(), {}, {}, nullptr, &layouts);
  planner.add({first, first, {}, {}}, plan, std::move(layouts));
  const auto bound = planner.bind({second, second, {}, {}});
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->plan.stages, planKernel(segment, second, second, GetParam()).stages);
}

// The blocks share rows. bind() gets other numbers of rows and parts than add().
TEST(SegmentPlanner, NewExtentsOfDividedRowsNeedNoText) {
  const Fusion segment = parseFusion(
      "heddle 1\nfusion f(%x: f32[a, b]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n");
  SegmentPlanner planner(segment, Target::Cuda);
  const std::vector<TensorDesc> first{denseDesc(DType::F32, {128, 1 << 20})};
  std::vector<StageLayout> layouts;
  const KernelPlan plan =
      planKernel(segment, first, first, Target::Cuda, {}, {}, nullptr, &layouts);
  EXPECT_EQ(plan.candidate, "divided vector=4 threads=512 parts=32 streams=1 reversed=1");
  planner.add({first, first, {}, {}}, plan, std::move(layouts));
  for (const auto& [rows, elements] : {std::pair<int64_t, int64_t>{300, 400000}, {64, 700004}}) {
    const std::vector<TensorDesc> second{denseDesc(DType::F32, {rows, elements})};
    const auto bound = planner.bind({second, second, {}, {}});
    ASSERT_TRUE(bound);
    const KernelPlan expected = planKernel(segment, second, second, Target::Cuda);
    EXPECT_NE(expected.candidate, plan.candidate);
    EXPECT_EQ(bound->plan.stages, expected.stages);
    EXPECT_EQ(bound->plan.workspace_bytes, expected.workspace_bytes);
  }
}

// A cluster shares each row. bind() gets other numbers of rows and elements than add().
TEST(SegmentPlanner, NewExtentsOfClustersNeedNoText) {
  const Fusion segment = parseFusion(
      "heddle 1\nfusion f(%x: f32[a, b]) {\n  %y = softmax(%x, axis=1)\n  return %y\n}\n");
  SegmentPlanner planner(segment, Target::Cuda);
  const std::vector<TensorDesc> first{denseDesc(DType::F32, {500, 60000})};
  std::vector<StageLayout> layouts;
  const KernelPlan plan =
      planKernel(segment, first, first, Target::Cuda, {}, {}, nullptr, &layouts);
  planner.add({first, first, {}, {}}, plan, std::move(layouts));
  const std::vector<TensorDesc> second{denseDesc(DType::F32, {300, 60400})};
  const auto bound = planner.bind({second, second, {}, {}});
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->plan.stages, planKernel(segment, second, second, Target::Cuda).stages);
  // Rows of twice the length have clusters of other sizes, so they need another text. The same
  // holds for a GPU without clusters.
  const std::vector<TensorDesc> longer{denseDesc(DType::F32, {500, 120000})};
  EXPECT_FALSE(planner.bind({longer, longer, {}, {}}));
  RunSizes without;
  without.clusters = false;
  EXPECT_FALSE(planner.bind({first, first, {}, without}));
}

TEST(SegmentPlanner, OperandsThatDisagreeAreReported) {
  SegmentPlanner planner(parseFusion("heddle 1\nfusion f" + kSegments[0]), Target::Cpp);
  const std::vector<TensorDesc> inputs = {denseDesc(DType::F32, {8, 64}),
                                          denseDesc(DType::F32, {8, 32})};
  try {
    planner.bind({inputs, std::vector<TensorDesc>{inputs[0]}, {}, {}});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("expected 64 elements"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace heddle::codegen::segment_planner_test
