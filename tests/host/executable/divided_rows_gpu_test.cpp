// Runs kernels whose blocks share rows (codegen/tile/divided_rows.h) on a GPU.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/fusion_executor.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::divided_rows_gpu_test {
namespace {

HostTensor numbers(DType dtype, const std::vector<int64_t>& sizes) {
  HostTensor values(dtype, sizes);
  uint32_t state = 12345;
  for (int64_t i = 0; i < values.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    values.set(i, static_cast<double>(state >> 8) * 0x1p-22 - 2);
  }
  return values;
}

class DividedRowsGpu : public GpuDeviceFixture {
 protected:
  // Runs a fusion of one input on two streams, whose kernels run at the same time. Expects that all
  // runs give the same bits. `tolerance` is relative to the largest element of an output.
  void expectRight(const std::string& text, DType dtype, const std::vector<int64_t>& sizes,
                   const SizeBindings& symbols, double tolerance) {
    constexpr int kRuns = 20;
    const Fusion fusion = parseFusion("heddle 1 fusion f" + text, "f");
    FusionExecutor executor(fusion, {device_.get(), nullptr, nullptr});
    const HostTensor x = numbers(dtype, sizes);
    const std::vector<Argument> inputs{
        toDevice(*device_, device_->allocator(), x, denseDesc(dtype, sizes))};
    ASSERT_NE(executor.kernelText(inputs, 0).find("hd::Board"), std::string::npos) << text;
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

TEST_F(DividedRowsGpu, SoftmaxIsRightAndRepeats) {
  const std::string text = "(%x: f32[n, m]) { %y = softmax(%x, axis=1) return %y }";
  expectRight(text, DType::F32, {64, 70000}, {{"n", 64}, {"m", 70000}}, 1e-4);
  expectRight(text, DType::F32, {65, 70001}, {{"n", 65}, {"m", 70001}}, 1e-4);
}

TEST_F(DividedRowsGpu, NormsOverSeveralAxesAreRightAndRepeat) {
  expectRight(
      "(%x: bf16[n, c, m]) { %f = cast(%x, dtype=f32) %s = sum(%f, axes=[0, 2], keepdim=true) %a "
      "= mul(%s, 2e-6) %d = sub(%f, %a) %q = mul(%d, %d) %v = sum(%q, axes=[0, 2], keepdim=true) "
      "%r = rsqrt(%v) %y = mul(%d, %r) return %y, %a, %r }",
      DType::BF16, {40, 16, 16384}, {{"n", 40}, {"c", 16}, {"m", 16384}}, 1e-2);
}

}  // namespace
}  // namespace heddle::host::divided_rows_gpu_test
