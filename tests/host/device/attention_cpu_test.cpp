#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/compile_stages.h"
#include "host/device/attention.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "host/device/null/null_device.h"
#include "host/executable.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::host::attention_cpu_test {
namespace {

TEST(AttentionCpu, LibraryCallIsRefused) {
  const auto device = makeCpuDevice();
  Executable executable(parseProgram("heddle 1\nprogram p(%q: f16[8, 16]) -> (%y) {\n"
                                     "  slot %y: f16[8, 16]\n  %y = allocate\n"
                                     "  call_library attention(%q, %q, %q) -> (%y)\n}\n"),
                        {device.get()});
  const TensorDesc desc = denseDesc(DType::F16, {8, 16});
  const Tensor q = toDevice(*device, device->allocator(), HostTensor(DType::F16, {8, 16}), desc);
  try {
    executable.run({q});
    ADD_FAILURE() << "it ran";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("call_library attention(%q, %q, %q)"), std::string::npos) << text;
    EXPECT_NE(text.find("attention as one call needs cuDNN on CUDA"), std::string::npos) << text;
  }
  const auto null = makeNullDevice();
  Executable idle(executable.program(), {null.get()});
  EXPECT_NO_THROW(idle.run({Tensor{q.data, desc, {}}}).wait());
}

// heddle lowers a fusion again if decidingSizes() gives other numbers than before. For a forward,
// the number of queries must not change them, because a decoder alternates between one query and
// several.
TEST(AttentionCpu, DecidingSizesDependOnTheLimitsOfTheLibrary) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%g: f16[t, f], %q: f16[t, e], %k: f16[s, e], %v: f16[s, f]) {\n"
      "  %y = scaled_dot_product_attention(%q, %k, %v)\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward(%g, %q, %k, %v)\n"
      "  return %y, %dq, %dk, %dv\n}\n");
  const std::vector<Attention> attentions = attentionsOf(fusion);
  ASSERT_EQ(attentions.size(), 2u);
  const auto deciding = [&](size_t i, int64_t queries, int64_t keys, int64_t width = 64) {
    return decidingSizes(fusion, attentions[i],
                         {{"t", queries}, {"s", keys}, {"e", width}, {"f", 32}});
  };
  EXPECT_EQ(deciding(0, 5, 9), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(deciding(0, 5, 9, 128), deciding(0, 5, 9, 64)) << "the library allows both widths";
  EXPECT_NE(deciding(0, 5, 9, 60), deciding(0, 5, 9, 64)) << "60 is no multiple of 8";
  EXPECT_EQ(deciding(0, 1, 9), deciding(0, 5, 1));
  EXPECT_NE(deciding(0, 5, 0), deciding(0, 5, 1));
  EXPECT_EQ(deciding(1, 5, 9), (std::vector<int64_t>{1, 1, 1, 2, 0, 1}));
  EXPECT_EQ(deciding(1, 5, 9), deciding(1, 7, 200));
  EXPECT_NE(deciding(1, 5, 9), deciding(1, 5, 128));
  EXPECT_NE(deciding(1, 5, 9), deciding(1, 10, 9));
  EXPECT_NE(deciding(1, 1, 9), deciding(1, 2, 9));
}

TEST(AttentionCpu, VersionsHaveThreeNumbers) {
  EXPECT_EQ(cudnnVersionText(91501), "9.15.1");
  EXPECT_EQ(cudnnVersionText(90000), "9.0.0");
  EXPECT_EQ(cudnnVersionText(8907), "8.9.7");
}

TEST(AttentionCpu, BackwardChecksQueriesKeysAndVersion) {
  const auto why = [](bool causal, int64_t queries, int64_t keys, int64_t version) {
    return whyNotTokens(causal, queries, keys, version);
  };
  EXPECT_EQ(why(false, 33, 128, 91400), "");
  EXPECT_EQ(why(true, 200, 256, 91400), "");
  EXPECT_EQ(why(true, 200, 200, 91501), "");
  EXPECT_NE(why(true, 200, 128, 91399).find("needs cuDNN 9.14.0, found 9.13.99"),
            std::string::npos);
  EXPECT_NE(why(true, 200, 200, 91500).find("before cuDNN 9.15.1"), std::string::npos);
  EXPECT_NE(why(true, 201, 200, 91900).find("multiple of 128 keys, found 200"), std::string::npos);
  EXPECT_NE(why(false, 33, 65, 91900).find("multiple of 128 keys, found 65"), std::string::npos);
  EXPECT_NE(why(false, 1, 128, 91900).find("a single query"), std::string::npos);
  EXPECT_EQ(why(false, 0, 128, 91900), "there are no queries");
  EXPECT_EQ(why(false, 2, 0, 91900), "there are no keys");
}

// If a device has a library for attention, the forward and the backward become one library call
// each. The backward reads the result and the log-sums of the forward.
TEST(AttentionCpu, ForwardAndBackwardLowerToOneCallEach) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%g: bf16[h, t, e], %q: bf16[h, t, e], %k: bf16[h, s, e], "
      "%v: bf16[h, s, e]) with h = 2, t = 5, s = 7, e = 8 {\n"
      "  %y = scaled_dot_product_attention(%q, %k, %v, causal=true)\n  %z = mul(%y, %g)\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward(%z, %q, %k, %v, causal=true)\n"
      "  return %dk, %dv, %dq\n}\n");
  SegmentOptions library;
  library.attention = [](const Fusion&, const Attention&) { return std::string(); };
  const Program program = host::compile(fusion, 1, {}, library);
  const std::string text = print(program);
  EXPECT_NE(text.find("call_library attention(%q, %k, %v, causal=true) -> (%y, %y_log_sums)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("call_library attention_backward(%z, %q, %k, %v, %y, %y_log_sums, "
                      "causal=true) -> (%dq, %dk, %dv)"),
            std::string::npos)
      << text;
  EXPECT_EQ(program.kernels.size(), 1u) << text;
  EXPECT_EQ(print(parseProgram(text)), text);
  const auto null = makeNullDevice();
  Executable idle(program, {null.get()});
  std::vector<Argument> inputs;
  for (int64_t tokens : {5, 5, 7, 7}) {
    const TensorDesc desc = denseDesc(DType::BF16, {2, tokens, 8});
    inputs.emplace_back(
        toDevice(*null, null->allocator(), HostTensor(DType::BF16, desc.sizes), desc));
  }
  EXPECT_NO_THROW(idle.run(inputs).wait());
}

TEST(AttentionCpu, LogSumsAreReadInPlaceOnlyWithoutGaps) {
  TensorDesc desc = denseDesc(DType::F32, {2, 3, 5});
  EXPECT_TRUE(areReadableLogSums(desc, 0));
  EXPECT_TRUE(areReadableLogSums(desc, 32));
  EXPECT_FALSE(areReadableLogSums(desc, 8));
  desc.strides = {20, 5, 1};  // room for a fourth head
  EXPECT_FALSE(areReadableLogSums(desc, 0));
  desc.sizes = {1, 3, 5};
  EXPECT_TRUE(areReadableLogSums(desc, 0));
  desc.strides = stridesFor(desc.sizes, {2, 1, 0});
  EXPECT_FALSE(areReadableLogSums(desc, 0));
}

}  // namespace
}  // namespace heddle::host::attention_cpu_test
