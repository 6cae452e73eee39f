// Tests the parser with sizes whose text would be longer than any memory.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::parse_fusion_test {
namespace {

// Returns the text of a fusion with `length` ops. Each op reads the result of the op before it.
// `op` is the text of a call that reads %v, which stands for this result.
std::string chainOf(int length, const std::string& op) {
  std::string text = "heddle 1\nfusion f(%v0: f32[t]) with t = 100 {\n";
  for (int i = 0; i < length; ++i) {
    std::string call = op;
    const std::string operand = "%v" + std::to_string(i);
    for (size_t at = call.find("%v"); at != std::string::npos; at = call.find("%v", at + 3)) {
      call.replace(at, 2, operand);
    }
    text += "  %v" + std::to_string(i + 1) + " = " + call + "\n";
  }
  return text + "  return %v" + std::to_string(length) + "\n}\n";
}

const Size& extentOfOutput(const Fusion& fusion) {
  return fusion.tensor(fusion.outputs().front()).domain[0].extent;
}

TEST(ParseFusion, ChainOfSelfConcatenationsEnds) {
  const Fusion fusion = parseFusion(chainOf(30, "cat(%v, %v, axis=0)"));
  verify(fusion);
  EXPECT_EQ(extentOfOutput(fusion).evaluate(lookupIn({{"t", 3}})), int64_t{3} << 30);
  EXPECT_TRUE(sameGraph(parseFusion(print(fusion)), fusion));
}

// The text of the size grows by a factor of five in each step.
TEST(ParseFusion, ChainOfSlicesEnds) {
  const Fusion fusion = parseFusion(chainOf(40, "slice_axis(%v, axis=0, start=1)"));
  verify(fusion);
  EXPECT_EQ(extentOfOutput(fusion).evaluate(lookupIn({{"t", 100}})), 60);
  EXPECT_EQ(extentOfOutput(fusion).evaluate(lookupIn({{"t", 10}})), 0);
  EXPECT_EQ(bindSizes(fusion, {{100}}).at("t"), 100);
}

TEST(ParseFusion, SizeThatNestsTooDeepNamesItsLine) {
  try {
    parseFusion(chainOf(3000, "slice_axis(%v, axis=0, start=1)"), "deep.fusion");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("deep.fusion:")) << error.what();
    EXPECT_NE(std::string(error.what()).find("nest more than"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle::parse_fusion_test
