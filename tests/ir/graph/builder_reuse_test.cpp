// Tests outputs that are stored in inputs. The tests cover the guards, and that passes keep the
// input of each output.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::builder_reuse_test {
namespace {

TEST(BuilderReuse, SizesThatARunComparesGetAGuard) {
  const Fusion fusion = parseFusion(R"(heddle 1
fusion f(%w: f32[n], %v: f32[m]) {
  %a = neg(%w)
  return %a in %v
})",
                                    "test");
  EXPECT_NO_THROW(bindSizes(fusion, {{3}, {3}}));
  EXPECT_THROW(bindSizes(fusion, {{3}, {4}}), UserError);
}

TEST(BuilderReuse, TextAndPassesKeepTheInputs) {
  const Fusion fusion = parseFusion(R"(heddle 1
fusion f(%w: f32[n], %g: f32[n], %m: f32[n]) {
  %dead = neg(%m)
  %a = add(%w, %g)
  %b = sub(%w, %g)
  return %a in %m, %g, %b in! %w
})",
                                    "test");
  for (const Fusion& each : {parseFusion(print(fusion), "again"), removeDead(fusion)}) {
    verify(each);
    ASSERT_EQ(each.reuses().size(), 3u);
    EXPECT_EQ(each.value(each.reuses()[0].value().input).name, "m");
    EXPECT_FALSE(each.reuses()[0]->required);
    EXPECT_EQ(each.reuses()[1], std::nullopt);
    EXPECT_EQ(each.value(each.reuses()[2].value().input).name, "w");
    EXPECT_TRUE(each.reuses()[2]->required);
  }
}

TEST(BuilderReuse, FusionsThatDifferInReusesAreDifferent) {
  const auto returning = [](const std::string& outputs) {
    return parseFusion(
        "heddle 1\nfusion f(%w: f32[n], %g: f32[n]) {\n  %a = add(%w, %g)\n  return " + outputs +
            "\n}\n",
        "test");
  };
  EXPECT_TRUE(sameGraph(returning("%a in %w"), returning("%a in %w")));
  EXPECT_FALSE(sameGraph(returning("%a in %w"), returning("%a in! %w")));
  EXPECT_FALSE(sameGraph(returning("%a in %w"), returning("%a in %g")));
  EXPECT_FALSE(sameGraph(returning("%a in %w"), returning("%a")));
}

TEST(BuilderReuse, VerifyFindsAReuseOfAValueThatIsNoInput) {
  FusionBuilder b("f");
  const ValueId w = b.input("w", DType::F32, {Size::symbol("n")});
  const ValueId a = b.pointwise("neg", {w});
  b.mutableFusion().appendOutput(a, {}, OutputReuse{a});
  EXPECT_THROW(verify(b.fusion()), InternalError);
}

}  // namespace
}  // namespace heddle::builder_reuse_test
