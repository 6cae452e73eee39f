// Tests which parts of a fusion concretizeSizes() keeps: annotations, and guards for scalars.
// tests/text/fusion/concretizeSizes.txt shows the decisions.
#include "ir/analysis/concretize_sizes.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::concretize_sizes_test {
namespace {

Fusion broadcastSum() {
  return parseFusion(
      "heddle 1\nmesh @m = [x=2]\n"
      "fusion f(%x: f32[n?, t] shard(@m, 1: x), %y: f32[k, t] order=[1, 0]) {\n"
      "  %a = add(%x, %y)\n  %s = sum(%a, axes=[0]) order=[0]\n  return %a, %s\n}\n");
}

TEST(ConcretizeSizes, RecordsCompareAndPrint) {
  const Fusion fusion = broadcastSum();
  const SizeDecisions one = decideSizes(fusion, {{"n", 1}, {"t", 4}});
  EXPECT_EQ(one.str(), "n = 1: broadcast\n");
  EXPECT_EQ(decideSizes(fusion, {{"n", 3}}).str(), "n: iteration\n");
  EXPECT_EQ(decideSizes(fusion, {{"n", 3}}), decideSizes(fusion, {{"n", 0}}));
  EXPECT_FALSE(one == decideSizes(fusion, {{"n", 2}}));
}

TEST(ConcretizeSizes, ShardingsLayoutsAndTextStay) {
  const Fusion fusion = broadcastSum();
  verify(fusion);
  EXPECT_TRUE(sameGraph(parseFusion(print(fusion)), fusion));
  for (const int64_t n : {1, 5}) {
    const Fusion concrete = concretizeSizes(fusion, SizeBindings{{"n", n}});
    verify(concrete);
    EXPECT_TRUE(sameGraph(parseFusion(print(concrete)), concrete));
    for (const Value& value : fusion.values()) {
      const Value& now = concrete.value(*concrete.find(value.name));
      EXPECT_EQ(now.tensor.layout, value.tensor.layout) << value.name;
      EXPECT_EQ(now.tensor.sharding, value.tensor.sharding) << value.name;
      for (const IterDomain& axis : now.tensor.domain) EXPECT_NE(axis.kind, IterKind::Symbolic);
    }
    const Value& sum = concrete.value(*concrete.find("a"));
    EXPECT_EQ(sum.tensor.domain[0].extent, Size::symbol(n == 1 ? "k" : "n"));
    EXPECT_EQ(concrete.guards.size(), n == 1 ? 0U : 1U);
  }
}

// An annotation that names values must name the same values in the new fusion.
TEST(ConcretizeSizes, AnnotationsAreRemapped) {
  Fusion fusion = broadcastSum();
  const ValueId sum = *fusion.find("a");
  const Fusion::Remap<ValueId> remap = [](const ValueId& id, const Fusion::IdMap& map) {
    return map(id);
  };
  fusion.annotate<ValueId>("of", sum, remap);
  const Fusion concrete = concretizeSizes(fusion, SizeBindings{{"n", 1}});
  EXPECT_EQ(concrete.value(concrete.annotation<ValueId>("of").value()).name, "a");
  EXPECT_TRUE(concrete.staleAnnotations().empty());
}

// An annotation about a value that does not exist must not disappear without a message.
TEST(ConcretizeSizes, StaleAnnotationsAreErrors) {
  Fusion fusion = broadcastSum();
  const Fusion::Remap<ValueId> remap = [](const ValueId& id, const Fusion::IdMap& map) {
    return map(id);
  };
  fusion.annotate<ValueId>("of", ValueId(99), remap);
  EXPECT_THROW(concretizeSizes(fusion, SizeBindings{{"n", 1}}), InternalError);
}

// The program for a scalar with the value 1 must not run with another value, so it has a guard.
TEST(ConcretizeSizes, ScalarsGetAGuard) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[t], %k: i64?) {\n"
      "  %r = reshape(%x, sizes=[%k, -1])\n  return %r\n}\n");
  const Fusion concrete = concretizeSizes(fusion, SizeBindings{{"%k", 1}});
  const bool has_guard =
      std::any_of(concrete.guards.begin(), concrete.guards.end(), [](const SizeGuard& guard) {
        return guard.a == Size::symbol("%k") && guard.b == Size(1) && !guard.at_most;
      });
  EXPECT_TRUE(has_guard);
}

}  // namespace
}  // namespace heddle::concretize_sizes_test
