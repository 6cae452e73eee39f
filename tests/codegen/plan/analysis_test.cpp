// Tests that kernels use faster functions with larger errors only for values that matter after a
// rounding to 16 bits (Analysis::rounded).
#include "codegen/plan/analysis.h"

#include <gtest/gtest.h>

#include "ir/text/fusion_text.h"

namespace heddle::codegen::analysis_test {
namespace {

// Returns the names of the f32 values for which Analysis::rounded is true.
std::vector<std::string> roundedOf(const char* text) {
  const Fusion fusion = parseFusion(text);
  const Analysis analysis = analyze(fusion);
  std::vector<std::string> names;
  for (ValueId id : fusion.values().ids()) {
    const Value& value = fusion.value(id);
    if (analysis.rounded[id] && value.tensor.dtype == DType::F32) names.push_back(value.name);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(Analysis, FactorsAndQuotientsBeforeACastAreRounded) {
  EXPECT_EQ(roundedOf(R"(heddle 1
fusion f(%x: f32[n], %z: f32[n]) {
  %e = exp(%x)
  %p = mul(%e, %z)
  %q = div(%p, %z)
  %y = cast(%q, dtype=bf16)
  return %y
})"),
            (Names{"z", "e", "p", "q"}));
}

TEST(Analysis, ADifferenceNeedsExactOperands) {
  EXPECT_EQ(roundedOf(R"(heddle 1
fusion f(%x: f32[n]) {
  %e = exp(%x)
  %d = sub(%e, 1)
  %y = cast(%d, dtype=f16)
  return %y
})"),
            (Names{"d"}));
}

TEST(Analysis, AnF32OutputAndAnExactReaderNeedExactValues) {
  EXPECT_EQ(roundedOf(R"(heddle 1
fusion f(%x: f32[n]) {
  %e = exp(%x)
  %g = exp(%e)
  %y = cast(%e, dtype=bf16)
  %z = cast(%g, dtype=bf16)
  return %y, %z, %g
})"),
            Names{});
}

TEST(Analysis, ASumOfExponentialsKeepsRelativeErrors) {
  EXPECT_EQ(roundedOf(R"(heddle 1
fusion f(%x: f32[m, n]) {
  %e = exp(%x)
  %s = sum(%e, axes=[1], keepdim=true)
  %q = div(%e, %s)
  %y = cast(%q, dtype=bf16)
  return %y
})"),
            (Names{"e", "s", "q"}));
}

TEST(Analysis, ASumOfValuesWithBothSignsNeedsExactElements) {
  EXPECT_EQ(roundedOf(R"(heddle 1
fusion f(%x: f32[m, n]) {
  %a = mul(%x, %x)
  %s = sum(%a, axes=[1])
  %y = cast(%s, dtype=bf16)
  return %y
})"),
            Names{"s"});
}

TEST(Analysis, F64IsNeverRounded) {
  const Fusion fusion = parseFusion(R"(heddle 1
fusion f(%x: f64[n]) {
  %e = exp(%x)
  %y = cast(%e, dtype=bf16)
  return %y
})");
  const Analysis analysis = analyze(fusion);
  EXPECT_FALSE(analysis.rounded[fusion.exprs().front().outputs[0]]);
}

}  // namespace
}  // namespace heddle::codegen::analysis_test
