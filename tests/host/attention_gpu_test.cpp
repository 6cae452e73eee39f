// scaled_dot_product_attention of half types as one call of cuDNN, held against loops in double.
#include <cmath>

#include "host/attention.h"
#include "host/text.h"
#include "ir/error.h"
#include "ir/text.h"
#include "tests/host/example_files.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::attention_gpu_test {
namespace {

enum class Lies : uint8_t {
  Plain,       // row-major
  TokensOut,   // [batch, tokens, heads, width] in memory, seen with the heads in front
  WithGaps,    // rows of width + 3: copied
  Stretched,   // one head for all, of stride 0: copied
  Misaligned,  // row-major, two bytes off
};

struct Shape {
  int64_t batch, heads, queries, keys, width, v_width;
};

TensorDesc descOf(DType dtype, std::vector<int64_t> sizes, Lies lies) {
  TensorDesc desc = denseDesc(dtype, std::move(sizes));
  if (lies == Lies::TokensOut) desc.strides = stridesFor(desc.sizes, {0, 2, 1, 3});
  if (lies == Lies::Stretched) desc.strides = {desc.strides[1], 0, desc.strides[2], 1};
  if (lies != Lies::WithGaps) return desc;
  int64_t span = desc.sizes[3] + 3;
  for (size_t i = 3; i-- > 0;) {
    desc.strides[i] = span;
    span *= desc.sizes[i];
  }
  return desc;
}

double unit(DType dtype) { return dtype == DType::BF16 ? 0x1p-8 : 0x1p-11; }

class AttentionGpu : public GpuDeviceTest {
 protected:
  void SetUp() override {
    GpuDeviceTest::SetUp();
    if (IsSkipped()) return;
    std::string why;
    if (findCudnnModule(why) == nullptr) GTEST_SKIP() << why;
  }

  Tensor place(const HostTensor& values, Lies lies) {
    const TensorDesc desc = descOf(values.dtype, values.sizes, lies);
    std::vector<std::byte> bytes(static_cast<size_t>(desc.allocBytes()));
    packInto(bytes.data(), desc, values);
    const int64_t shift = lies == Lies::Misaligned ? 2 : 0;
    void* memory = static_cast<std::byte*>(allocate(desc.allocBytes() + shift)) + shift;
    device_->copy(memory, bytes.data(), desc.allocBytes(), stream_, {});
    finish(stream_);
    return {memory, desc, {}};
  }

  HostTensor fetch(const Tensor& tensor) { return toHost(*device_, tensor); }
};

Fusion attentionOf(DType dtype, bool causal) {
  return parseFusion(
      fmt::format("heddle 1\nfusion f(%q: {0}[b, h, t, e], %k: {0}[b, h, s, e], "
                  "%v: {0}[b, h, s, f]) {{\n  %y = scaled_dot_product_attention("
                  "%q, %k, %v, causal={1})\n  return %y\n}}\n",
                  name(dtype), causal));
}

SizeBindings sizesOf(const Shape& x) {
  return {{"b", x.batch}, {"h", x.heads}, {"t", x.queries},
          {"s", x.keys},  {"e", x.width}, {"f", x.v_width}};
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.numel(); ++i) result.push_back(toDouble(tensor.at(i)));
  return result;
}

// One row of queries; `first_key` is its head's.
std::vector<double> rowOf(const Shape& x, const std::vector<double>& q, int64_t row,
                          const std::vector<double>& k, const std::vector<double>& v,
                          int64_t first_key, int64_t seen) {
  std::vector<double> shares(static_cast<size_t>(seen));
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (int64_t i = 0; i < x.width; ++i) {
      score += q[static_cast<size_t>(row * x.width + i)] *
               k[static_cast<size_t>((first_key + j) * x.width + i)];
    }
    shares[static_cast<size_t>(j)] = score / std::sqrt(static_cast<double>(x.width));
    top = std::max(top, shares[static_cast<size_t>(j)]);
  }
  for (double& share : shares) sum += share = std::exp(share - top);
  std::vector<double> result(static_cast<size_t>(x.v_width));
  for (int64_t j = 0; j < seen; ++j) {
    for (int64_t i = 0; i < x.v_width; ++i) {
      result[static_cast<size_t>(i)] += shares[static_cast<size_t>(j)] / sum *
                                        v[static_cast<size_t>((first_key + j) * x.v_width + i)];
    }
  }
  return result;
}

void expectAttention(const Shape& x, bool causal, const HostTensor& q, const HostTensor& k,
                     const HostTensor& v, const HostTensor& got, const std::string& what) {
  const std::vector<double> qs = numbers(q), ks = numbers(k), vs = numbers(v), ys = numbers(got);
  double most = 0;
  for (double each : vs) most = std::max(most, std::fabs(each));
  double worst = 0;
  for (int64_t row = 0; row < x.batch * x.heads * x.queries; ++row) {
    const int64_t seen = causal ? std::min(x.keys, row % x.queries + 1) : x.keys;
    const auto exact = rowOf(x, qs, row, ks, vs, row / x.queries * x.keys, seen);
    for (size_t i = 0; i < exact.size(); ++i) {
      const double y = ys[static_cast<size_t>(row) * exact.size() + i];
      worst = std::max(worst, std::isnan(y) ? INFINITY : std::fabs(y - exact[i]));
    }
  }
  EXPECT_LE(worst, 2 * unit(q.dtype) * most + 1e-5) << what;
}

HostTensor sample(DType dtype, std::vector<int64_t> sizes, const char* name, bool one_head) {
  HostTensor tensor = randomTensor(dtype, sizes, 5, name);
  if (!one_head) return tensor;
  const int64_t a_head = sizes[2] * sizes[3];
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.set(i, tensor.at(i / a_head / sizes[1] * sizes[1] * a_head + i % a_head));
  }
  return tensor;
}

constexpr Shape kShapes[] = {
    {2, 3, 128, 128, 64, 64}, {1, 2, 100, 70, 128, 128}, {2, 2, 33, 65, 40, 24},
    {1, 1, 1, 19, 8, 8},      {1, 2, 70, 1, 64, 64},
};

TEST_F(AttentionGpu, IsWithinItsBoundHoweverTheOperandsLie) {
  for (DType dtype : {DType::BF16, DType::F16}) {
    for (bool causal : {false, true}) {
      const Fusion fusion = attentionOf(dtype, causal);
      FusionExecutor executor(fusion, {device_.get()});
      for (const Shape& x : kShapes) {
        for (Lies lies :
             {Lies::Plain, Lies::TokensOut, Lies::WithGaps, Lies::Stretched, Lies::Misaligned}) {
          const bool one = lies == Lies::Stretched;
          const HostTensor q = sample(dtype, {x.batch, x.heads, x.queries, x.width}, "q", one);
          const HostTensor k = sample(dtype, {x.batch, x.heads, x.keys, x.width}, "k", one);
          const HostTensor v = sample(dtype, {x.batch, x.heads, x.keys, x.v_width}, "v", one);
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

TEST_F(AttentionGpu, TheProgramHasOneCallAndItsResultLandsInPreallocatedMemory) {
  const Shape x{2, 3, 40, 40, 64, 64};
  const Fusion fusion = attentionOf(DType::BF16, true);
  const Program program =
      host::compile(fusion, 1, {}, attentionOptions(DeviceKind::Cuda, sizesOf(x)));
  const std::string text = print(program);
  EXPECT_NE(text.find("call_library attention(%q, %k, %v, causal=true)"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("launch"), std::string::npos) << text;
  Executable executable(parseProgram(text), {device_.get()});
  const std::vector<int64_t> sizes = {x.batch, x.heads, x.queries, x.width};
  const HostTensor q = sample(DType::BF16, sizes, "q", false);
  const HostTensor k = sample(DType::BF16, sizes, "k", false);
  const HostTensor v = sample(DType::BF16, sizes, "v", false);
  for (Lies lies : {Lies::Plain, Lies::TokensOut, Lies::WithGaps, Lies::Misaligned}) {
    RunOptions options;
    options.preallocated = {place(HostTensor(DType::BF16, sizes), lies)};
    const Outputs outputs = executable.run(
        {place(q, Lies::Plain), place(k, Lies::TokensOut), place(v, Lies::Plain)}, options);
    outputs.wait();
    EXPECT_EQ(std::get<Tensor>(outputs[0]).data, options.preallocated[0].data);
    expectAttention(x, true, q, k, v, fetch(options.preallocated[0]),
                    fmt::format("result lies {}", static_cast<int>(lies)));
  }
}

TEST_F(AttentionGpu, OtherWidthsAreTheOpsItIsMadeOf) {
  const Fusion fusion = attentionOf(DType::BF16, false);
  FusionExecutor executor(fusion, {device_.get()});
  for (int64_t width : {64, 20, 136, 8}) {
    const Shape x{1, 2, 9, 11, width, 16};
    const SegmentOptions library = attentionOptions(DeviceKind::Cuda, sizesOf(x));
    const bool fits = width % 8 == 0 && width <= 128;
    const std::string text = print(host::compile(fusion, 1, {}, library));
    EXPECT_EQ(text.find("attention(%q") != std::string::npos, fits) << width;
    const HostTensor q = sample(DType::BF16, {1, 2, 9, width}, "q", false);
    const HostTensor k = sample(DType::BF16, {1, 2, 11, width}, "k", false);
    const HostTensor v = sample(DType::BF16, {1, 2, 11, 16}, "v", false);
    const Outputs outputs =
        executor.run({place(q, Lies::Plain), place(k, Lies::Plain), place(v, Lies::Plain)});
    outputs.wait();
    expectAttention(x, false, q, k, v, fetch(std::get<Tensor>(outputs[0])),
                    fmt::format("width {}", width));
  }
}

TEST_F(AttentionGpu, HeadsOfSeveralRanks) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%a: bf16[t, h, e] shard(@m, 1: x), %b: bf16[t, h, e] shard(@m, 1: x),
         %c: bf16[t, h, e] shard(@m, 1: x)) with t = 33, h = 3, e = 16 {
  %q = permute(%a, axes=[1, 0, 2])
  %k = permute(%b, axes=[1, 0, 2])
  %v = permute(%c, axes=[1, 0, 2])
  %o = scaled_dot_product_attention(%q, %k, %v, causal=true)
  %y = permute(%o, axes=[1, 0, 2])
  return %y shard(@m)
})");
  for (int ranks : {1, 2}) {
    testing::HarnessOptions options;
    options.kind = DeviceKind::Cuda;
    options.ranks = ranks;
    options.sizes = SizeBindings(fusion.size_defaults.begin(), fusion.size_defaults.end());
    const Program program =
        host::compile(fusion, ranks, {}, attentionOptions(DeviceKind::Cuda, options.sizes));
    EXPECT_NE(print(program).find("call_library attention"), std::string::npos);
    testing::expectClose(testing::runProgram(program, options),
                         testing::expectedOf(fusion, options), fmt::format("{} ranks", ranks));
  }
}

}  // namespace
}  // namespace heddle::host::attention_gpu_test
