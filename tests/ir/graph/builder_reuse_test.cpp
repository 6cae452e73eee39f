// Tests outputs that are stored in inputs: what FusionBuilder and the parser accept, and that
// passes keep the inputs.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::builder_reuse_test {
namespace {

std::string errorOf(const std::string& returned) {
  try {
    parseFusion("heddle 1\nfusion f(%w: f32[n], %g: f32[n], %v: f32[4], %i: i32[n], %s: f32) {\n" +
                    std::string("  %a = add(%w, %g)\n  return ") + returned + "\n}\n",
                "test");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(BuilderReuse, InputsThatDoNotFitAreRefused) {
  EXPECT_EQ(errorOf("%a in %w"), "");
  EXPECT_EQ(errorOf("%a in %a"),
            "test:4: return at line 4: an output can only be stored in an input, and %a: f32[n] is "
            "none");
  EXPECT_EQ(errorOf("%a in %i"),
            "test:4: return at line 4: %a: f32[n] cannot be stored in %i: i32[n], because their "
            "types differ");
  EXPECT_EQ(errorOf("%a in %w, %g in! %w"),
            "test:4: return at line 4: the outputs %a: f32[n] and %g: f32[n] cannot both be stored "
            "in the input %w: f32[n]");
  EXPECT_EQ(errorOf("%a in %s"),
            "test:4: return at line 4: operand %s: f32 is a scalar, expected a tensor");
  EXPECT_EQ(errorOf("%a in %z"), "test:4:16: found '%z', expected a value defined above");
  EXPECT_EQ(errorOf("%a in"), "test:5:1: found '}', expected a value, as in %x");
}

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
