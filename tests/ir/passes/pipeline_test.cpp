#include "ir/passes/pipeline.h"

#include <gtest/gtest.h>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"
#include "tests/sanitized.h"

namespace heddle::pipeline_test {
namespace {

constexpr const char* kMlp = R"(heddle 1
mesh @m = [x=ranks]
fusion mlp(%x: bf16[t, h], %w1: bf16[h, f] shard(@m, 1: x), %w2: bf16[f, h] shard(@m, 0: x)) {
  %dead = exp(%x)
  %deader = neg(%dead)
  %a = matmul(%x, %w1)
  %g = silu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m)
})";

TEST(PipelineOfFusions, ChangedFusionsAreDumpedAndAllPassesTimed) {
  std::vector<std::string> dumped;
  std::vector<std::string> timed;
  PassOptions options;
  options.dump = [&](std::string_view name, const std::string&) { dumped.emplace_back(name); };
  options.timing = [&](std::string_view name, double) { timed.emplace_back(name); };
  runPasses(parseFusion(kMlp), 2, options);
  EXPECT_EQ(dumped, (std::vector<std::string>{"concretizeMeshes", "removeDead", "propagateSharding",
                                              "insertResharding"}));
  EXPECT_EQ(timed.size(), passNames().size());
}

TEST(PipelineOfFusions, AnnotationsFollowTheirValues) {
  Fusion f = parseFusion(kMlp);
  ValueId y = f.find("y").value();
  f.annotate<ValueId>("loss", y,
                      [](const ValueId& id, const Fusion::IdMap& map) { return map(id); });
  f.annotate<int>("number", 7);
  Fusion result = runPasses(f, 2);
  EXPECT_NE(result.find("y").value(), y);  // the passes add values before it, so its id changes
  EXPECT_EQ(result.annotation<ValueId>("loss"), result.find("y"));
  EXPECT_EQ(result.annotation<int>("number"), 7);
}

// Each expression keeps the number of its line in the text, because later stages name the line in
// error messages.
TEST(PipelineOfFusions, ExpressionsKeepTheirLines) {
  const Fusion result = runPasses(parseFusion(kMlp), 2);
  std::vector<std::string> lines;
  for (const Expression& expr : result.exprs()) {
    lines.push_back(fmt::format("{} {}", result.value(expr.outputs[0]).name, expr.line));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"a 6", "g 7", "y_partial 8", "y 8"}));
}

TEST(PipelineOfFusions, EqualFusionsGiveEqualResults) {
  Fusion once = runPasses(parseFusion(kMlp), 4);
  Fusion again = runPasses(parseFusion(kMlp), 4);
  EXPECT_TRUE(sameGraph(once, again));
  EXPECT_EQ(print(once), print(again));
  // The passes change nothing when they run again.
  EXPECT_TRUE(sameGraph(runPasses(once, 4), once));
}

TEST(PipelineOfFusions, MlpHasFourGroups) {
  SegmentedFusion s = segment(runPasses(parseFusion(kMlp), 4));
  std::vector<std::string> kinds;
  for (const Group& group : s.groups) kinds.emplace_back(name(group.kind));
  EXPECT_EQ(kinds, (std::vector<std::string>{"library", "kernel", "library", "communication"}));
  for (const Group& group : s.groups) {
    Fusion part = extract(s, group);
    EXPECT_EQ(part.meshes, s.fusion.meshes);
    for (const Value& value : part.values()) {
      EXPECT_EQ(value.tensor.sharding, s.fusion.tensor(*s.fusion.find(value.name)).sharding);
    }
  }
}

// No pass may recurse or take quadratic time.
TEST(PipelineOfFusions, ChainOfTenThousandShardedExpressionsIsLowered) {
  FusionBuilder b("chain");
  DeviceMesh mesh;
  mesh.name = "m";
  mesh.axes = {{MeshAxis::X, 2}};
  b.mesh(mesh);
  ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  Sharding sharding;
  sharding.axes = {{MeshAxis::X}};
  b.shard(x, sharding);
  ValueId v = x;
  constexpr size_t kOps = heddle::testing::casesOf<size_t>(10'000, 600);
  for (size_t i = 0; i < kOps; ++i) v = b.pointwise("add", {v, x});
  b.output(v);
  Fusion result = runPasses(std::move(b).build(), 2);
  EXPECT_EQ(result.exprs().size(), kOps);
  EXPECT_EQ(result.tensor(result.outputs()[0]).sharding, sharding);
}

}  // namespace
}  // namespace heddle::pipeline_test
