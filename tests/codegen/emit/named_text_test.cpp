// Tests the texts of kernels with the names of the fusion (codegen/emit/named_text.h).
#include "codegen/emit/named_text.h"

#include <gtest/gtest.h>

#include <regex>

#include "codegen/emit/plan_kernel.h"
#include "codegen/plan/generated.h"
#include "ir/text/fusion_text.h"

namespace heddle::codegen::named_text_test {
namespace {

// A fusion in which all names of values and sizes begin with "zz", and the descriptors of a run.
struct Case {
  const char* text;
  std::vector<TensorDesc> in;
  std::vector<TensorDesc> out;
};

std::vector<Case> cases() {
  const auto f32 = [](std::vector<int64_t> sizes) {
    return denseDesc(DType::F32, std::move(sizes));
  };
  TensorDesc columnMajor = f32({512, 256});
  columnMajor.strides = {1, 512};
  return {
      // items, pointwise; a scalar
      {"(%zzx: f32[zzn, zzm], %zzs: f32) { %zzy = mul(%zzx, %zzs) return %zzy }",
       {f32({64, 48}), {}},
       {f32({64, 48})}},
      // items, a reduction
      {"(%zzx: f32[zzn, zzm]) { %zzy = sum(%zzx, axes=[1]) return %zzy }",
       {f32({512, 64})},
       {f32({512})}},
      // items, a reduction in ranges
      {"(%zzx: f32[zzn, zzm]) { %zzy = sum(%zzx, axes=[0]) return %zzy }",
       {f32({65536, 512})},
       {f32({512})}},
      // rows
      {"(%zzx: f32[zzn, zzm]) { %zzy = softmax(%zzx, axis=1) return %zzy }",
       {f32({512, 1000})},
       {f32({512, 1000})}},
      // bundles
      {"(%zzx: f32[zzn, zzk, zzm]) { %zzy = softmax(%zzx, axis=1) return %zzy }",
       {f32({64, 300, 1024})},
       {f32({64, 300, 1024})}},
      // rows and sums of columns
      {"(%zzx: f32[zzn, zzm]) { %zzy = softmax(%zzx, axis=1) %zzs = sum(%zzy, axes=[0]) return "
       "%zzy, %zzs }",
       {f32({4096, 1024})},
       {f32({4096, 1024}), f32({1024})}},
      // divided rows
      {"(%zzx: f32[zzn, zzm]) { %zzy = softmax(%zzx, axis=1) return %zzy }",
       {f32({128, 1000000})},
       {f32({128, 1000000})}},
      // a cluster
      {"(%zzx: f32[zzn, zzm]) { %zzy = softmax(%zzx, axis=1) return %zzy }",
       {f32({512, 60000})},
       {f32({512, 60000})}},
      // squares
      {"(%zzx: f32[zzn, zzm]) { %zzy = exp(%zzx) return %zzy }", {columnMajor}, {f32({512, 256})}},
  };
}

KernelTexts namedTexts(const Case& c, Target target) {
  const Fusion fusion = parseFusion(std::string("heddle 1 fusion f") + c.text, "f");
  return describeKernel(fusion, c.in, c.out, target, {}, unshardedSizes(fusion, c.in, c.out));
}

std::string withoutNames(const std::string& text) {
  return std::regex_replace(
      text, std::regex("_zz[a-z0-9]*(_[0-9]+)?(_zz[a-z0-9]*)*|_partial|_inverse[0-9]+"), "");
}

// Without the names, the text is the text that heddle compiles.
TEST(NamedText, NamesAreAddedToTheCompiledText) {
  for (const Case& c : cases()) {
    for (Target target : {Target::Cuda, Target::Cpp}) {
      const Fusion fusion = parseFusion(std::string("heddle 1 fusion f") + c.text, "f");
      const std::string compiled = planKernel(fusion, c.in, c.out, target).source.text;
      const std::string named = namedTexts(c, target).kernel;
      EXPECT_EQ(compiled.find("zz"), std::string::npos) << c.text;
      EXPECT_NE(named.find("zzx"), std::string::npos) << c.text;
      EXPECT_NE(named.find("zzy"), std::string::npos) << c.text;
      EXPECT_EQ(withoutNames(named), compiled) << c.text;
    }
  }
}

TEST(NamedText, PointersTilesLoopsAndStatesHaveNames) {
  const std::vector<Case> all = cases();
  const std::string rows = namedTexts(all[3], Target::Cuda).kernel;
  for (const char* word : {"t0_zzx", "t1_zzy", "tile0_zzx", "k0_zzn", "r0_zzm", "acc0_zzy"}) {
    EXPECT_NE(rows.find(word), std::string::npos) << word;
  }
  // The two axes of a pointwise kernel are merged.
  const std::string merged = namedTexts(all[0], Target::Cuda).kernel;
  for (const char* word : {"in0_zzx", "out1_zzy", "k0_zzn_zzm", "scalar1_zzs"}) {
    EXPECT_NE(merged.find(word), std::string::npos) << word;
  }
}

// In a bundle, a part is a part of the states of an accumulator.
TEST(NamedText, PartsOfStatesHaveTheNamesOfTheirReductions) {
  const std::string bundles = namedTexts(cases()[4], Target::Cuda).kernel;
  EXPECT_NE(bundles.find("part0_zzy"), std::string::npos);
  EXPECT_EQ(bundles.find("part0_zzx"), std::string::npos);
}

TEST(NamedText, TheScheduleHasTheSameNamesAsTheText) {
  const std::string schedule = namedTexts(cases()[1], Target::Cuda).schedule;
  for (const char* word : {"k0_zzn=512", "r0_zzm=64", "t0_zzx", "store t1_zzy", "acc0_zzy"}) {
    EXPECT_NE(schedule.find(word), std::string::npos) << schedule;
  }
}

TEST(NamedText, NamesThatAreNoIdentifiersAreChangedOrCut) {
  const Case c{
      "(%a.b: f32[n], %a_very_long_name_that_nobody_wants_to_read: f32[n]) { %y = "
      "add(%a.b, %a_very_long_name_that_nobody_wants_to_read) return %y }",
      {denseDesc(DType::F32, {64}), denseDesc(DType::F32, {64})},
      {denseDesc(DType::F32, {64})}};
  const std::string text = namedTexts(c, Target::Cuda).kernel;
  EXPECT_NE(text.find("t0_a_b ="), std::string::npos);
  EXPECT_NE(text.find("t1_a_very_long_name_that_nobody_wan ="), std::string::npos);
}

}  // namespace
}  // namespace heddle::codegen::named_text_test
