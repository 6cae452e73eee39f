#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "host/compile.h"
#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/rank_harness.h"

// Tests kernels that compute an operand instead of reading it: a reduction or a gather of a value
// that is broadcast, expanded or generated. Such a value needs no memory.
namespace heddle::host::generated_operands {

using testing::deviceFloats;
using testing::ramp;

// Runs fusions on a device, and counts the bytes that a run holds at most.
class Runner {
 public:
  explicit Runner(Device& device) : device_(device), tracking_(device.allocator()) {}

  // Returns the elements of all outputs.
  std::vector<double> run(const std::string& fusion, const std::vector<Argument>& inputs) {
    FusionExecutor executor(parseFusion("heddle 1\n" + fusion), {&device_});
    RunOptions options;
    options.allocator = &tracking_;
    tracking_.resetPeak();
    const Outputs outputs = executor.run(inputs, options);
    outputs.wait();
    std::vector<double> values;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const HostTensor host = toHost(device_, std::get<Tensor>(outputs[i]));
      for (int64_t k = 0; k < host.numel(); ++k) values.push_back(toDouble(host.at(k)));
    }
    return values;
  }

  // Returns the largest number of bytes that the last run held at once.
  int64_t peakBytes() const { return tracking_.peakBytes(); }

  Tensor floats(size_t count, float first, float step) {
    return deviceFloats(device_, ramp(count, first, step), {static_cast<int64_t>(count)});
  }

 private:
  Device& device_;
  TrackingAllocator tracking_;
};

inline Scalar integer(int64_t value) { return value; }

// The workspace of a large reduction is at most this large.
constexpr int64_t kSmall = 1 << 16;

inline void expectMaximumOfExpandedVector(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%x: f32[3], %n: i64) {\n"
      "  %e = expand(%x, sizes=[%n, 3])\n  %y = max(%e, axes=[0])\n  return %y\n}\n";
  for (const int64_t n : {1, 2, 5, 1000, 3'000'000}) {
    EXPECT_EQ(runner.run(text, {runner.floats(3, -1, 2.5), integer(n)}),
              (std::vector<double>{-1, 1.5, 4}))
        << n;
    EXPECT_LE(runner.peakBytes(), kSmall) << n;
  }
}

// The variance and the softmax of generated rows need several sweeps, and each sweep computes the
// rows again.
inline void expectSeveralSweepsOverGeneratedRows(Device& device) {
  Runner runner(device);
  const std::string variance =
      "fusion f(%n: i64) {\n  %i = iota(sizes=[%n], axis=0)\n  %f = cast(%i, dtype=f32)\n"
      "  %m = mean(%f, axes=[0], keepdim=true)\n  %d = sub(%f, %m)\n  %q = mul(%d, %d)\n"
      "  %y = mean(%q, axes=[0])\n  return %y\n}\n";
  for (const int64_t n : {1, 2, 100, 5000, 3'000'000}) {
    const std::vector<double> values = runner.run(variance, {integer(n)});
    const double exact = (static_cast<double>(n) * static_cast<double>(n) - 1) / 12;
    EXPECT_NEAR(values.at(0), exact, 1e-5 * exact) << n;
    EXPECT_LE(runner.peakBytes(), kSmall) << n;
  }
  // Rows of %x, which is repeated along the axis of the softmax. The maximum of each column is 1/n.
  const std::string softmax =
      "fusion f(%x: f32[3], %n: i64) {\n  %e = expand(%x, sizes=[%n, 3])\n"
      "  %s = softmax(%e, axis=0)\n  %y = max(%s, axes=[0])\n  return %y\n}\n";
  for (const int64_t n : {1, 2, 100, 5000, 1'000'000}) {
    const auto share = static_cast<float>(1.0 / static_cast<double>(n));
    for (double value : runner.run(softmax, {runner.floats(3, -1, 2.5), integer(n)})) {
      EXPECT_NEAR(value, share, 1e-5 * share) << n;
    }
    EXPECT_LE(runner.peakBytes(), kSmall) << n;
  }
}

inline void expectSumOfExpandedColumn(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%x: f32[m]) with n = 4096 {\n  %c = broadcast(%x, axes=[1])\n"
      "  %e = expand(%c, sizes=[m, n])\n"
      "  %all = sum(%e, axes=[0, 1])\n  %rows = sum(%e, axes=[0])\n  return %all, %rows\n}\n";
  for (const size_t m : {1, 7, 64}) {
    const std::vector<double> got = runner.run(text, {runner.floats(m, 1, 1)});
    const auto sum = static_cast<double>(m * (m + 1) / 2);
    ASSERT_EQ(got.size(), 4097u);
    EXPECT_EQ(got[0], sum * 4096);
    for (size_t i = 1; i < got.size(); ++i) ASSERT_EQ(got[i], sum);
    EXPECT_LE(runner.peakBytes(), kSmall + 4096 * 4) << m;
  }
}

inline void expectCountOfIndices(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%n: i64, %c: i64) {\n  %i = iota(sizes=[%n], axis=0)\n  %b = ge(%i, %c)\n"
      "  %y = sum(%b, axes=[0])\n  %first = sum(%i, axes=[0])\n  return %y, %first\n}\n";
  for (const int64_t n : {0, 1, 4095, 4096, 10'000'019}) {
    const auto triangle = static_cast<double>(n) * static_cast<double>(n - 1) / 2;
    for (const int64_t c : {int64_t{0}, n / 3, n}) {
      EXPECT_EQ(runner.run(text, {integer(n), integer(c)}),
                (std::vector<double>{static_cast<double>(n - c), triangle}))
          << n << " " << c;
      EXPECT_LE(runner.peakBytes(), kSmall);
    }
  }
}

// Tests a generated axis between two axes of the tensor, and as the first and the last of three
// axes.
inline void expectGeneratedAxes(Device& device) {
  Runner runner(device);
  constexpr int64_t kA = 5, kB = 37, kN = 211;
  for (const int64_t axis : {0, 1, 2}) {
    std::vector<int64_t> sizes{kA, kB};
    sizes.insert(sizes.begin() + axis, kN);
    const std::string text = fmt::format(
        "fusion f(%x: f32[a, b], %w: f32[b]) {{\n  %u = broadcast(%x, axes=[{0}])\n"
        "  %e = expand(%u, sizes={1})\n  %i = iota(sizes={1}, axis={0})\n  %f = cast(%i, "
        "dtype=f32)\n  %p = mul(%e, %f)\n  %s = sum(%p, axes=[{0}])\n  %y = add(%s, %w)\n"
        "  return %y\n}}\n",
        axis, str(sizes));
    std::vector<double> want;
    for (int64_t i = 0; i < kA * kB; ++i) {
      want.push_back(static_cast<double>(i - 50) * (kN * (kN - 1) / 2) + 0.5 * (i % kB));
    }
    const Tensor x = deviceFloats(device, ramp(kA * kB, -50, 1), {kA, kB});
    EXPECT_EQ(runner.run(text, {x, runner.floats(kB, 0, 0.5)}), want) << axis;
  }
}

// Tests a gather whose index is generated, and whose rows are only summed.
inline void expectGatherAtGeneratedIndices(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%t: f32[k], %n: i64) {\n  %i = iota(sizes=[%n], axis=0)\n  %r = fmod(%i, 7)\n"
      "  %g = take(%t, %r, axis=0)\n  %y = sum(%g, axes=[0])\n  return %y\n}\n";
  for (const int64_t n : {1, 6, 70'000}) {
    double want = 0;
    for (int64_t i = 0; i < n; ++i) want += static_cast<double>(i % 7);
    EXPECT_EQ(runner.run(text, {runner.floats(7, 0, 1), integer(n)}), std::vector<double>{want});
    EXPECT_LE(runner.peakBytes(), kSmall);
  }
}

inline void expectFilledTensorsAndRandomNumbers(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%v: f64, %seed: i64) with n = 1000, k = 3 {\n"
      "  %a = full(%v, sizes=[n, k], dtype=f32)\n  %s = sum(%a, axes=[0])\n"
      "  %u = uniform(%a, %seed, 0)\n  %m = max(%u, axes=[0])\n  return %s, %m, %u\n}\n";
  std::vector<double> got = runner.run(text, {Scalar(0.5), integer(9)});
  ASSERT_EQ(got.size(), 6u + 3000u);
  std::vector<double> most(3, -1);
  for (size_t i = 0; i < 3000; ++i) most[i % 3] = std::max(most[i % 3], got[6 + i]);
  EXPECT_EQ(std::vector<double>(got.begin(), got.begin() + 3), (std::vector<double>(3, 500)));
  EXPECT_EQ(std::vector<double>(got.begin() + 3, got.begin() + 6), most);
  const size_t returned = text.find(", %u\n");
  const std::string without = text.substr(0, returned) + text.substr(returned + 4);
  got.resize(6);
  EXPECT_EQ(runner.run(without, {Scalar(0.5), integer(9)}), got);
  EXPECT_LE(runner.peakBytes(), 6 * 4 + 2 * 64);
}

// Tests takes from generated values. The kernel computes the selected elements only. Indices below
// 0 and above the end give 0, or NaN.
inline void expectTakeFromGeneratedValues(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%i: i64[k], %n: i64, %seed: i64) {\n"
      "  %a = iota(sizes=[%n, 2], axis=0)\n  %b = iota(sizes=[%n, 2], axis=1)\n"
      "  %c = mul(%a, 10)\n  %d = add(%c, %b)\n  %y = take(%d, %i, axis=0)\n"
      "  %e = full(0.5, sizes=[%n], dtype=f32)\n  %z = take(%e, %i, axis=0)\n"
      "  %u = uniform(%e, %seed, 0)\n  %w = take(%u, %i, axis=0)\n  return %y, %z, %w\n}\n";
  const int64_t n = 3'000'000;
  const std::vector<int64_t> index = {0, 5, -1, n - 1, n, 17};
  HostTensor host(DType::I64, {6});
  for (int64_t k = 0; k < 6; ++k) host.set(k, index[static_cast<size_t>(k)]);
  const Tensor indices = toDevice(device, device.allocator(), host, denseDesc(DType::I64, {6}));
  const std::vector<double> got = runner.run(text, {indices, integer(n), integer(3)});
  EXPECT_LE(runner.peakBytes(), kSmall);
  const std::vector<double> all = runner.run(
      "fusion f(%n: i64, %seed: i64) {\n  %e = full(0.5, sizes=[%n], dtype=f32)\n"
      "  %u = uniform(%e, %seed, 0)\n  return %u\n}\n",
      {integer(n), integer(3)});
  ASSERT_EQ(got.size(), 12u + 6u + 6u);
  for (size_t k = 0; k < 6; ++k) {
    const int64_t at = index[k];
    const bool valid = at >= 0 && at < n;
    EXPECT_EQ(got[2 * k], valid ? static_cast<double>(10 * at) : 0) << k;
    EXPECT_EQ(got[2 * k + 1], valid ? static_cast<double>(10 * at + 1) : 0) << k;
    EXPECT_EQ(std::isnan(got[12 + k]), !valid) << k;
    EXPECT_EQ(std::isnan(got[18 + k]), !valid) << k;
    if (!valid) continue;
    EXPECT_EQ(got[12 + k], 0.5) << k;
    EXPECT_EQ(got[18 + k], all[static_cast<size_t>(at)]) << k;
  }
}

// Tests sharded axes. The elements of a rank's block depend on their indices in the unsharded
// tensor.
inline void expectShardedAxes(DeviceKind kind) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[k], %n: i64 = 11) with k = 3 {
  %i = iota(sizes=[%n], axis=0) shard(@m, 0: x)
  %f = cast(%i, dtype=f32)
  %s = sum(%f, axes=[0])
  %e = expand(%x, sizes=[%n, k]) shard(@m, 0: x)
  %m = max(%e, axes=[0])
  %c = broadcast(%f, axes=[1])
  %p = mul(%e, %c)
  %d = sum(%p, axes=[0])
  return %s, %m, %d
})");
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int64_t n : {1, 2, 11, 1000}) {
      testing::HarnessOptions options;
      options.ranks = ranks;
      options.kind = kind;
      options.sizes = {{"k", 3}, {"%n", n}};
      options.scalars["n"] = n;
      options.tensors["x"] = HostTensor(DType::F32, {3});
      for (int64_t k = 0; k < 3; ++k) options.tensors["x"].set(k, 0.5 * static_cast<double>(k) - 1);
      const auto got = testing::runProgram(compile(fusion, ranks), options);
      const auto triangle = static_cast<double>(n * (n - 1) / 2);
      EXPECT_EQ(toDouble(got[0].at(0)), triangle) << ranks << " " << n;
      for (int64_t k = 0; k < 3; ++k) {
        const double x = 0.5 * static_cast<double>(k) - 1;
        EXPECT_EQ(toDouble(got[1].at(k)), x) << ranks << " " << n;
        EXPECT_EQ(toDouble(got[2].at(k)), x * triangle) << ranks << " " << n;
      }
    }
  }
}

inline void expectErrorOfNegativeSize(Device& device) {
  Runner runner(device);
  const std::string text =
      "fusion f(%x: f32[3], %n: i64) {\n"
      "  %e = expand(%x, sizes=[%n, 3])\n  %y = max(%e, axes=[0])\n  return %y\n}\n";
  const std::string why = testing::userErrorOf([&] {
    runner.run(text, {runner.floats(3, 0, 1), integer(-4)});
  });
  EXPECT_NE(why.find("%n"), std::string::npos) << why;
  EXPECT_NE(why.find("-4"), std::string::npos) << why;
}

}  // namespace heddle::host::generated_operands
