// Runs kernels on a GPU whose blocks depend on each other: blocks that share rows, either through
// the L2 cache (codegen/tile/divided_rows.h) or as clusters (RowLayout::cluster), and blocks that
// reduce ranges of an axis (codegen/families/loops.h).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/fusion_executor.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::dependent_blocks_gpu_test {
namespace {

constexpr const char* kSharedRows = "hd::Board";
constexpr const char* kClusters = "__cluster_dims__(4)";
constexpr const char* kRanges = "hd::arriveLast(args.counters";

HostTensor numbers(DType dtype, const std::vector<int64_t>& sizes) {
  HostTensor values(dtype, sizes);
  uint32_t state = 12345;
  for (int64_t i = 0; i < values.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    values.set(i, static_cast<double>(state >> 8) * 0x1p-22 - 2);
  }
  return values;
}

class DependentBlocksGpu : public GpuDeviceFixture {
 protected:
  // Runs a fusion of one input on two streams, whose kernels run at the same time. Expects that the
  // kernel text contains `marker`, and that all runs give the same bits. `tolerance` is relative to
  // the largest element of an output.
  void expectRight(const std::string& marker, const std::string& text, DType dtype,
                   const std::vector<int64_t>& sizes, const SizeBindings& symbols,
                   double tolerance) {
    constexpr int kRuns = 20;
    const Fusion fusion = parseFusion("heddle 1 fusion f" + text, "f");
    FusionExecutor executor(fusion, {device_.get(), nullptr, nullptr});
    const HostTensor x = numbers(dtype, sizes);
    const std::vector<Argument> inputs{
        toDevice(*device_, device_->allocator(), x, denseDesc(dtype, sizes))};
    ASSERT_NE(executor.kernelText(inputs, 0).find(marker), std::string::npos) << text;
    finish(stream_);
    const Stream other = device_->createStream();
    std::vector<Outputs> runs;
    for (int i = 0; i < kRuns; ++i) {
      RunOptions options;
      options.stream = i % 2 == 0 ? stream_ : other;
      runs.push_back(executor.run(inputs, options));
    }
    for (Outputs& run : runs) run.wait();
    ReferenceInputs reference;
    reference.tensors[fusion.inputs()[0]] = x;
    const std::vector<HostTensor> wanted = evaluateReference(fusion, reference, symbols);
    for (size_t o = 0; o < wanted.size(); ++o) {
      const HostTensor first = toHost(*device_, std::get<Tensor>(runs[0][o]));
      double largest = 0;
      double error = 0;
      for (int64_t i = 0; i < first.numel(); ++i) {
        const double expected = toDouble(wanted[o].at(i));
        largest = std::max(largest, std::abs(expected));
        const double difference = std::abs(toDouble(first.at(i)) - expected);
        error = difference <= error ? error : difference;  // also if the difference is NaN
      }
      EXPECT_LE(error, tolerance * largest) << text << " output " << o;
      for (size_t r = 1; r < runs.size(); ++r) {
        const HostTensor again = toHost(*device_, std::get<Tensor>(runs[r][o]));
        const auto bytes = static_cast<size_t>(first.numel() * sizeOf(first.dtype));
        EXPECT_EQ(std::memcmp(first.data.get(), again.data.get(), bytes), 0)
            << text << " run " << r;
      }
    }
    runs.clear();
    device_->destroyStream(other);
  }
};

TEST_F(DependentBlocksGpu, SoftmaxIsRightAndRepeats) {
  const std::string text = "(%x: f32[n, m]) { %y = softmax(%x, axis=1) return %y }";
  expectRight(kSharedRows, text, DType::F32, {12, 400000}, {{"n", 12}, {"m", 400000}}, 1e-4);
  expectRight(kSharedRows, text, DType::F32, {13, 400001}, {{"n", 13}, {"m", 400001}}, 1e-4);
}

TEST_F(DependentBlocksGpu, ClustersAreRightAndRepeat) {
  if (!device_->compiler()->supportsClusters()) GTEST_SKIP() << "the GPU has no clusters";
  const std::string softmax = "(%x: f32[n, m]) { %y = softmax(%x, axis=1) return %y }";
  expectRight(kClusters, softmax, DType::F32, {64, 60000}, {{"n", 64}, {"m", 60000}}, 1e-4);
  expectRight(kClusters, softmax, DType::F32, {65, 60001}, {{"n", 65}, {"m", 60001}}, 1e-4);
  const std::string norm =
      "(%x: bf16[n, m]) { %f = cast(%x, dtype=f32) %s = sum(%f, axes=[1], keepdim=true) %a = "
      "mul(%s, 1e-5) %d = sub(%f, %a) %q = mul(%d, %d) %v = sum(%q, axes=[1], keepdim=true) %r = "
      "rsqrt(%v) %y = mul(%d, %r) return %y, %a, %r }";
  expectRight(kClusters, norm, DType::BF16, {40, 100000}, {{"n", 40}, {"m", 100000}}, 1e-2);
}

TEST_F(DependentBlocksGpu, NormsOverSeveralAxesAreRightAndRepeat) {
  expectRight(
      kSharedRows,
      "(%x: bf16[n, c, m]) { %f = cast(%x, dtype=f32) %s = sum(%f, axes=[0, 2], keepdim=true) %a "
      "= mul(%s, 2e-6) %d = sub(%f, %a) %q = mul(%d, %d) %v = sum(%q, axes=[0, 2], keepdim=true) "
      "%r = rsqrt(%v) %y = mul(%d, %r) return %y, %a, %r }",
      DType::BF16, {40, 16, 16384}, {{"n", 40}, {"c", 16}, {"m", 16384}}, 1e-2);
}

TEST_F(DependentBlocksGpu, LongReductionsAreRightAndRepeat) {
  const std::string rows = "(%x: f32[n, m]) { %y = sum(%x, axes=[1]) %z = max(%x, axes=[1]) ";
  expectRight(kRanges, rows + "return %y, %z }", DType::F32, {7, 1000003},
              {{"n", 7}, {"m", 1000003}}, 1e-4);
  const std::string columns = "(%x: bf16[n, m]) { %f = cast(%x, dtype=f32) %y = sum(%f, axes=[0]) ";
  expectRight(kRanges, columns + "%z = mul(%y, 0.5) return %y, %z }", DType::BF16, {40003, 520},
              {{"n", 40003}, {"m", 520}}, 1e-4);
  expectRight(kRanges, "(%x: f32[n]) { %y = sum(%x, axes=[0]) return %y }", DType::F32, {10000019},
              {{"n", 10000019}}, 1e-3);
}

// The sizes change between runs, so runs with different plans use the same counters.
TEST_F(DependentBlocksGpu, ReductionsOfOtherSizesFindTheCountersClean) {
  const Fusion fusion =
      parseFusion("heddle 1 fusion f(%x: i64[n, m]) { %y = sum(%x, axes=[0]) return %y }", "f");
  FusionExecutor executor(fusion, {device_.get(), nullptr, nullptr});
  RunOptions options;
  options.stream = stream_;
  for (const int64_t n : {100003, 30011, 100003, 65536}) {
    const int64_t m = n == 30011 ? 7 : 5;
    HostTensor x(DType::I64, {n, m});
    for (int64_t i = 0; i < x.numel(); ++i) x.set(i, i / m % 7);
    const std::vector<Argument> inputs{
        toDevice(*device_, device_->allocator(), x, denseDesc(DType::I64, {n, m}))};
    ASSERT_NE(executor.kernelText(inputs, 0).find(kRanges), std::string::npos) << n;
    Outputs outputs = executor.run(inputs, options);
    outputs.wait();
    const HostTensor sums = toHost(*device_, std::get<Tensor>(outputs[0]));
    int64_t wanted = 0;
    for (int64_t i = 0; i < n; ++i) wanted += i % 7;
    for (int64_t i = 0; i < m; ++i) EXPECT_EQ(toInt(sums.at(i)), wanted) << n << " column " << i;
  }
}

}  // namespace
}  // namespace heddle::host::dependent_blocks_gpu_test
