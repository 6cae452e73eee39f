// Compares scaled_dot_product_attention in half types, as one call of cuDNN, with loops in double.
#include "host/compile_stages.h"
#include "host/fusion_executor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/device/attention_cases.h"
#include "tests/host/example_files.h"

namespace heddle::host::attention_gpu_test {
namespace {

Fusion attentionOf(DType dtype, bool causal) {
  return parseFusion(
      fmt::format("heddle 1\nfusion f(%q: {0}[b, h, t, e], %k: {0}[b, h, s, e], "
                  "%v: {0}[b, h, s, f]) {{\n  %y = scaled_dot_product_attention("
                  "%q, %k, %v, causal={1})\n  return %y\n}}\n",
                  name(dtype), causal));
}

constexpr AttentionShape kAttentionShapes[] = {
    {2, 3, 128, 128, 64, 64}, {1, 2, 100, 70, 128, 128}, {2, 2, 33, 65, 40, 24},
    {1, 1, 1, 19, 8, 8},      {1, 2, 70, 1, 64, 64},
};

TEST_F(AttentionGpu, ResultsAreWithinBoundsForEveryLayout) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    for (bool causal : {false, true}) {
      const Fusion fusion = attentionOf(dtype, causal);
      FusionExecutor executor(fusion, {device_.get()});
      for (const AttentionShape& x : kAttentionShapes) {
        for (AttentionLies lies :
             {AttentionLies::Plain, AttentionLies::TokensOut, AttentionLies::WithGaps,
              AttentionLies::Stretched, AttentionLies::Misaligned, AttentionLies::Between}) {
          const bool one = lies == AttentionLies::Stretched;
          const HostTensor q =
              attentionSample(dtype, {x.batch, x.heads, x.queries, x.width}, "q", one);
          const HostTensor k =
              attentionSample(dtype, {x.batch, x.heads, x.keys, x.width}, "k", one);
          const HostTensor v =
              attentionSample(dtype, {x.batch, x.heads, x.keys, x.v_width}, "v", one);
          const Outputs outputs = executor.run({place(q, lies), place(k, lies), place(v, lies)});
          outputs.wait();
          expectAttention(
              x, causal, q, k, v, fetch(std::get<Tensor>(outputs[0])),
              fmt::format("{} causal {} queries {} keys {} width {} lies {}", name(dtype), causal,
                          x.queries, x.keys, x.width, static_cast<int>(lies)));
        }
      }
    }
  }
}

TEST_F(AttentionGpu, ProgramIsOneCallIntoPreallocatedMemory) {
  const AttentionShape x{2, 3, 40, 40, 64, 64};
  const Fusion fusion = attentionOf(DType::BF16, true);
  const Program program =
      host::compile(fusion, 1, {}, attentionOptions(DeviceKind::Cuda, attentionSizes(x)));
  const std::string text = print(program);
  EXPECT_NE(text.find("call_library attention(%q, %k, %v, causal=true)"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("launch"), std::string::npos) << text;
  Executable executable(parseProgram(text), {device_.get()});
  const std::vector<int64_t> sizes = {x.batch, x.heads, x.queries, x.width};
  const HostTensor q = attentionSample(DType::BF16, sizes, "q", false);
  const HostTensor k = attentionSample(DType::BF16, sizes, "k", false);
  const HostTensor v = attentionSample(DType::BF16, sizes, "v", false);
  for (AttentionLies lies :
       {AttentionLies::Plain, AttentionLies::TokensOut, AttentionLies::WithGaps,
        AttentionLies::Misaligned, AttentionLies::Between}) {
    RunOptions options;
    options.preallocated = {place(HostTensor(DType::BF16, sizes), lies)};
    const Outputs outputs =
        executable.run({place(q, AttentionLies::Plain), place(k, AttentionLies::TokensOut),
                        place(v, AttentionLies::Plain)},
                       options);
    outputs.wait();
    EXPECT_EQ(std::get<Tensor>(outputs[0]).data, options.preallocated[0].data);
    expectAttention(x, true, q, k, v, fetch(options.preallocated[0]),
                    fmt::format("result lies {}", static_cast<int>(lies)));
    expectZerosBetween(options.preallocated[0]);
  }
}

TEST_F(AttentionGpu, UnsupportedWidthsRunAsOps) {
  const Fusion fusion = attentionOf(DType::BF16, false);
  FusionExecutor executor(fusion, {device_.get()});
  for (int64_t width : {64, 20, 136, 8}) {
    const AttentionShape x{1, 2, 9, 11, width, 16};
    const SegmentOptions library = attentionOptions(DeviceKind::Cuda, attentionSizes(x));
    const bool fits = width % 8 == 0 && width <= 128;
    const std::string text = print(host::compile(fusion, 1, {}, library));
    EXPECT_EQ(text.find("attention(%q") != std::string::npos, fits) << width;
    const HostTensor q = attentionSample(DType::BF16, {1, 2, 9, width}, "q", false);
    const HostTensor k = attentionSample(DType::BF16, {1, 2, 11, width}, "k", false);
    const HostTensor v = attentionSample(DType::BF16, {1, 2, 11, 16}, "v", false);
    const Outputs outputs =
        executor.run({place(q, AttentionLies::Plain), place(k, AttentionLies::Plain),
                      place(v, AttentionLies::Plain)});
    outputs.wait();
    expectAttention(x, false, q, k, v, fetch(std::get<Tensor>(outputs[0])),
                    fmt::format("width {}", width));
  }
}

// Requires that the fusion compiles to these library calls, on one rank and on two. Compares the
// results with those of the reference.
void expectCalls(const Fusion& fusion, const std::vector<std::string>& calls) {
  for (int ranks : {1, 2}) {
    testing::HarnessOptions options;
    options.kind = DeviceKind::Cuda;
    options.ranks = ranks;
    options.sizes = SizeBindings(fusion.size_defaults.begin(), fusion.size_defaults.end());
    const Program program =
        host::compile(fusion, ranks, {}, attentionOptions(DeviceKind::Cuda, options.sizes));
    for (const std::string& call : calls) {
      EXPECT_NE(print(program).find(call), std::string::npos) << call;
    }
    testing::expectClose(testing::runProgram(program, options),
                         testing::expectedOf(fusion, options), fmt::format("{} ranks", ranks));
  }
}

// Repeats each head `group` times.
HostTensor repeatedHeads(const HostTensor& x, int64_t group) {
  HostTensor result(x.dtype, {x.sizes[0], x.sizes[1] * group, x.sizes[2], x.sizes[3]});
  const int64_t a_head = x.sizes[2] * x.sizes[3];
  for (int64_t i = 0; i < result.numel(); ++i) {
    result.set(i, x.at(i / a_head / group * a_head + i % a_head));
  }
  return result;
}

TEST_F(AttentionGpu, SharedHeadsMatchRepeatedHeads) {
  for (bool causal : {false, true}) {
    const Fusion fusion = parseFusion(fmt::format(
        "heddle 1\nfusion f(%q: bf16[b, h, t, e], %k: bf16[b, n, s, e], %v: bf16[b, n, s, f]) {{\n"
        "  %y = scaled_dot_product_attention(%q, %k, %v, causal={}, gqa=true)\n  return %y\n}}\n",
        causal));
    FusionExecutor executor(fusion, {device_.get()});
    for (int64_t group : {3, 6, 1}) {
      const AttentionShape x{2, 6, 50, 35, 64, 32};
      const int64_t heads = x.heads / group;
      SizeBindings sizes = attentionSizes(x);
      sizes["n"] = heads;
      const std::string text =
          print(host::compile(fusion, 1, {}, attentionOptions(DeviceKind::Cuda, sizes)));
      EXPECT_NE(text.find("gqa=true"), std::string::npos) << text;
      const HostTensor q = attentionSample(DType::BF16, {2, 6, 50, 64}, "q", false);
      const HostTensor k = attentionSample(DType::BF16, {2, heads, 35, 64}, "k", false);
      const HostTensor v = attentionSample(DType::BF16, {2, heads, 35, 32}, "v", false);
      for (AttentionLies lies :
           {AttentionLies::Plain, AttentionLies::TokensOut, AttentionLies::Misaligned}) {
        const Outputs outputs = executor.run({place(q, lies), place(k, lies), place(v, lies)});
        outputs.wait();
        expectAttention(
            x, causal, q, repeatedHeads(k, group), repeatedHeads(v, group),
            fetch(std::get<Tensor>(outputs[0])),
            fmt::format("causal {} group {} lies {}", causal, group, static_cast<int>(lies)));
      }
    }
  }
}

TEST_F(AttentionGpu, ShardedHeadsUseTheLibrary) {
  const Fusion shared = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%a: bf16[t, h, e] shard(@m, 1: x), %b: bf16[t, n, e] shard(@m, 1: x),
         %c: bf16[t, n, e] shard(@m, 1: x)) with t = 33, h = 8, n = 2, e = 16 {
  %q = permute(%a, axes=[1, 0, 2])
  %k = permute(%b, axes=[1, 0, 2])
  %v = permute(%c, axes=[1, 0, 2])
  %o = scaled_dot_product_attention(%q, %k, %v, causal=true, gqa=true)
  %y = permute(%o, axes=[1, 0, 2])
  return %y shard(@m)
})");
  expectCalls(shared, {"call_library attention("});
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%a: bf16[t, h, e] shard(@m, 1: x), %b: bf16[t, h, e] shard(@m, 1: x),
         %c: bf16[t, h, e] shard(@m, 1: x), %d: bf16[t, h, e] shard(@m, 1: x))
    with t = 128, h = 3, e = 16 {
  %q = permute(%a, axes=[1, 0, 2])
  %k = permute(%b, axes=[1, 0, 2])
  %v = permute(%c, axes=[1, 0, 2])
  %o = scaled_dot_product_attention(%q, %k, %v, causal=true)
  %y = permute(%o, axes=[1, 0, 2])
  %g = permute(%d, axes=[1, 0, 2])
  %x, %w, %u = scaled_dot_product_attention_backward(%g, %q, %k, %v, causal=true)
  %dq = permute(%x, axes=[1, 0, 2])
  %dk = permute(%w, axes=[1, 0, 2])
  %dv = permute(%u, axes=[1, 0, 2])
  return %y shard(@m), %dq shard(@m, 1: x), %dk, %dv
})");
  expectCalls(fusion, {"call_library attention(%q, %k, %v, causal=true) -> (%o, %o_log_sums)",
                       "call_library attention_backward(%g, %q, %k, %v, %o, %o_log_sums, "});
}

}  // namespace
}  // namespace heddle::host::attention_gpu_test
