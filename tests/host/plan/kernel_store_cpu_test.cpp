// Tests which kernels a new plan plans, generates and compiles again.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/sanitized.h"

namespace heddle::host::kernel_store_cpu_test {
namespace {

constexpr int kSegments = 40;

// Returns a fusion of 39 segments over %x and one segment over %w. A flip reads other elements than
// it writes, so each flip begins a segment. (Without the pad, heddle would flip %x instead of %e0.)
Fusion chain() {
  std::string text =
      "heddle 1\nfusion f(%x: f32[n], %w: f32[m, k]) {\n  %p = pad(%x, lows=[0], "
      "highs=[0])\n  %e0 = neg(%p)\n";
  for (int i = 1; i + 1 < kSegments; ++i) {
    text += fmt::format("  %f{0} = flip(%e{1}, axes=[0])\n  %e{0} = add(%f{0}, {0}.0)\n", i, i - 1);
  }
  text += fmt::format("  %s = sum(%w, axes=[1])\n  return %e{}, %s\n}}\n", kSegments - 2);
  return parseFusion(text);
}

class KernelStoreCpu : public ::testing::Test {
 protected:
  Tensor tensor(std::vector<int64_t> sizes) {
    HostTensor values(DType::F32, sizes);
    for (int64_t i = 0; i < values.numel(); ++i) values.set(i, static_cast<double>(i % 13) / 4);
    return toDevice(*device, device->allocator(), values, denseDesc(DType::F32, sizes));
  }

  // Runs the fusion, and compares the results with the formulas of chain().
  void run(FusionExecutor& executor, int64_t n, int64_t m, int64_t k) {
    const Outputs outputs = executor.run({tensor({n}), tensor({m, k})});
    outputs.wait();
    const HostTensor e = toHost(*device, std::get<Tensor>(outputs[0]));
    const HostTensor s = toHost(*device, std::get<Tensor>(outputs[1]));
    ASSERT_EQ(e.sizes, std::vector<int64_t>{n});
    ASSERT_EQ(s.sizes, std::vector<int64_t>{m});
    // The 38 flips restore the order, and the constants 1 .. 38 are added.
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(toDouble(e.at(i)), 741.0 - static_cast<double>(i % 13) / 4, 1e-3) << i;
    }
    for (int64_t row = 0; row < m; ++row) {
      double sum = 0;
      for (int64_t i = row * k; i < (row + 1) * k; ++i) sum += static_cast<double>(i % 13) / 4;
      ASSERT_NEAR(toDouble(s.at(row)), sum, 1e-3 * sum) << row;
    }
  }

  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  codegen::TempFolder folder;
  codegen::ImageCache images{folder.path()};
};

// A sum over few rows is divided into two launches, so it needs another kernel than a sum over many
// short rows.
TEST_F(KernelStoreCpu, SizeOfOneSegmentCompilesOneKernel) {
  FusionExecutor executor(chain(), {device.get(), nullptr, &images});
  run(executor, 100, 64, 32);
  const Executable::Stats first = executor.stats();
  EXPECT_EQ(first.kernel_texts, kSegments);
  EXPECT_EQ(first.kernels_reused, 0);
  run(executor, 100, 1, 1 << 20);
  const Executable::Stats second = executor.stats();
  EXPECT_EQ(second.plans, 2);
  EXPECT_EQ(second.programs, 1);
  EXPECT_EQ(second.kernel_texts, kSegments + 1);
  EXPECT_EQ(second.kernels_reused, kSegments - 1);
  EXPECT_EQ(second.kernels_compiled, first.kernels_compiled + 1);
}

// The kernel of each segment serves many sizes, but its launch depends on the size.
TEST_F(KernelStoreCpu, NewSizesCompileNothing) {
  FusionExecutor executor(chain(), {device.get(), nullptr, &images});
  run(executor, 1000, 64, 32);
  const int64_t compiled = executor.stats().kernels_compiled;
  for (int64_t n = 1016; n < 1100; n += 16) run(executor, n, 64, 32);
  const Executable::Stats stats = executor.stats();
  EXPECT_EQ(stats.kernels_compiled, compiled);
  EXPECT_EQ(stats.kernel_texts, kSegments);
  EXPECT_EQ(stats.kernels_reused, 6 * kSegments);
}

// Segments that differ only in the names of their values share one kernel.
TEST_F(KernelStoreCpu, NamesOfValuesDoNotCount) {
  FusionExecutor executor(parseFusion("heddle 1\nfusion f(%x: f32[n]) {\n"
                                      "  %a = exp(%x)\n  %b = flip(%a, axes=[0])\n"
                                      "  %c = exp(%b)\n  %d = flip(%c, axes=[0])\n"
                                      "  %e = exp(%d)\n  return %e\n}\n"),
                          {device.get(), nullptr, &images});
  const Outputs outputs = executor.run({tensor({2})});
  outputs.wait();
  const auto thrice = [](float x) { return std::exp(std::exp(std::exp(x))); };
  const std::vector<float> values = testing::floatsOf(*device, outputs[0]);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_NEAR(values[0], thrice(0), 1e-4);
  EXPECT_NEAR(values[1], thrice(0.25F), 1e-4);
  EXPECT_EQ(executor.stats().kernel_texts, 2);
}

// The widths of a pad are arguments of its kernel.
TEST_F(KernelStoreCpu, NewPadWidthsCompileNothing) {
  FusionExecutor executor(
      parseFusion("heddle 1\nfusion f(%x: f32[m, k], %n: i64) {\n"
                  "  %p = pad(%x, 3.0, lows=[%n, 0], highs=[2, %n + 1])\n  %y = neg(%p)\n"
                  "  return %y\n}\n"),
      {device.get(), nullptr, &images});
  for (const int64_t n : {3, 1, 7, 0, 2}) {
    const Outputs outputs = executor.run({tensor({4, 5}), Scalar(n)});
    outputs.wait();
    const HostTensor y = toHost(*device, std::get<Tensor>(outputs[0]));
    ASSERT_EQ(y.sizes, (std::vector<int64_t>{6 + n, 6 + n}));
    for (int64_t row = 0; row < 6 + n; ++row) {
      for (int64_t column = 0; column < 6 + n; ++column) {
        const int64_t i = (row - n) * 5 + column;
        const bool inside = row >= n && row < n + 4 && column < 5;
        const double expected = inside ? static_cast<double>(i % 13) / 4 : 3.0;
        EXPECT_EQ(toDouble(y.at(row * (6 + n) + column)), -expected) << n << row << column;
      }
    }
  }
  const Executable::Stats stats = executor.stats();
  EXPECT_EQ(stats.plans, 5);
  EXPECT_EQ(stats.programs, 1);
  EXPECT_LE(stats.kernel_texts, 2);  // %n = 0 may have another form
  EXPECT_EQ(stats.kernel_texts + stats.kernels_reused, 5);
}

// Tile programs and parts of a shared launch have forms too.
TEST_F(KernelStoreCpu, NewSizesOfTileProgramsCompileNothing) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[m, k], %u: f32[n], %v: f32[k]) {\n"
      "  %s = softmax(%x, axis=1)\n  %t = permute(%s, axes=[1, 0])\n"
      "  %r = add(%t, 1.0)\n  %a = neg(%u)\n  %b = neg(%v)\n"
      "  return %s, %r, %a, %b\n}\n");
  FusionExecutor executor(fusion, {device.get(), nullptr, &images});
  std::vector<int64_t> texts;
  for (const int64_t step : {0, 1, 2, 3}) {
    const std::vector<Argument> inputs = {tensor({200 + 8 * step, 40 + step}),
                                          tensor({1000 + step}), tensor({40 + step})};
    FusionExecutor fresh(fusion, {device.get(), nullptr, &images});
    const Outputs outputs = executor.run(inputs), expected = fresh.run(inputs);
    outputs.wait();
    expected.wait();
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(testing::floatsOf(*device, outputs[i]), testing::floatsOf(*device, expected[i]));
    }
    texts.push_back(executor.stats().kernel_texts);
  }
  EXPECT_EQ(texts.front(), texts.back());
  EXPECT_EQ(executor.stats().plans, 4);
}

// One executor runs many shapes, and a new executor per shape runs the same ones. The first binds
// kernels that it has generated for other shapes.
TEST_F(KernelStoreCpu, ReusedKernelsEqualNewKernels) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[a, b], %y: f32[b]) {\n"
      "  %e = broadcast(%y, axes=[0])\n  %d = add(%x, %e)\n  %s = sin(%d)\n"
      "  %t = flip(%s, axes=[1])\n"
      "  %u = mul(%t, %s)\n  %r = sum(%u, axes=[1])\n  %c = sum(%u, axes=[0])\n"
      "  %p = permute(%u, axes=[1, 0])\n  %m = softmax(%t, axis=1)\n"
      "  return %u, %r, %c, %p, %m\n}\n");
  codegen::ImageCache kept;  // not `images`: this test need not compile its kernels again
  FusionExecutor executor(fusion, {device.get(), nullptr, &kept});
  std::mt19937 random(7);
  constexpr int kRuns = heddle::testing::casesOf(60, 15);
  for (int i = 0; i < kRuns; ++i) {
    static constexpr int64_t kExtents[] = {0, 1, 2, 3, 16, 33, 100, 1000};
    const int64_t a = kExtents[random() % 8], b = kExtents[random() % 8];
    Tensor x = tensor({a, b});
    if (random() % 3 == 0) x.desc.strides = {1, a};
    const std::vector<Argument> inputs{x, tensor({b})};
    FusionExecutor fresh(fusion, {device.get(), nullptr, &kept});
    const Outputs outputs = executor.run(inputs);
    const Outputs expected = fresh.run(inputs);
    outputs.wait();
    expected.wait();
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(testing::floatsOf(*device, outputs[k]), testing::floatsOf(*device, expected[k]))
          << "output " << k << " of [" << a << ", " << b << "], run " << i;
    }
  }
  EXPECT_GT(executor.stats().kernels_reused, kRuns / 3);
}

// A run with a transposed %w needs a second program. The programs share the kernels of %x.
TEST_F(KernelStoreCpu, ProgramsOfAnExecutorShareKernels) {
  FusionExecutor executor(chain(), {device.get(), nullptr, &images});
  run(executor, 100, 8, 8);
  Tensor transposed = tensor({8, 8});
  transposed.desc.strides = {1, 8};
  executor.run({tensor({100}), transposed}).wait();
  const Executable::Stats stats = executor.stats();
  EXPECT_EQ(stats.programs, 2);
  EXPECT_EQ(stats.kernels_reused, kSegments - 1);
  EXPECT_EQ(stats.kernel_texts, kSegments + 1);
}

// The parts of both kernels reduce axes that no operand has. The kernels differ only in names, so
// they share an analysis.
TEST_F(KernelStoreCpu, EqualKernelsWithGeneratedAxesShareParts) {
  std::string text = "heddle 1\n";
  for (const char* names : {"ab", "cd"}) {
    text += fmt::format(
        "kernel @{0}{1} {{\n  fusion {0}{1}(%x{0}: f32[3], %x{1}: f32[3]) {{\n"
        "    %e{0} = expand(%x{0}, sizes=[n, 3])\n    %y{0} = sum(%e{0}, axes=[0])\n"
        "    %e{1} = expand(%x{1}, sizes=[m, 3])\n    %y{1} = sum(%e{1}, axes=[0])\n"
        "    return %y{0}, %y{1}\n  }}\n}}\n",
        names[0], names[1]);
  }
  text +=
      "program p(%x: f32[3], %z: f32[n, m]) -> (%a, %b, %c, %d) {\n"
      "  slot %a: f32[3]\n  slot %b: f32[3]\n  slot %c: f32[3]\n  slot %d: f32[3]\n"
      "  %a = allocate stream=0\n  %b = allocate stream=0\n"
      "  %c = allocate stream=0\n  %d = allocate stream=0\n"
      "  launch @ab(%x, %x) -> (%a, %b) stream=0\n"
      "  launch @cd(%a, %b) -> (%c, %d) stream=0\n}\n";
  Executable executable(parseProgram(text, "p"), {device.get(), nullptr, &images});
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{4, 5}, {2, 7}}) {
    const Outputs outputs = executable.run({tensor({3}), tensor({n, m})});
    outputs.wait();
    const auto factors = {n, m, n * n, m * m};
    size_t output = 0;
    for (const int64_t factor : factors) {
      const auto step = static_cast<float>(factor) / 4;
      EXPECT_EQ(testing::floatsOf(*device, outputs[output++]), testing::ramp(3, 0, step));
    }
  }
}

TEST_F(KernelStoreCpu, ImagesOnDiskAreLoaded) {
  for (const bool is_new : {true, false}) {
    codegen::ImageCache same(folder.path());
    FusionExecutor executor(chain(), {device.get(), nullptr, &same});
    run(executor, 100, 4, 4);
    EXPECT_EQ(executor.stats().kernels_compiled > 0, is_new);
    EXPECT_EQ(executor.stats().kernels_loaded > 0, !is_new);
  }
}

// The widths of a pad change the arguments of its kernel, even if all shapes are equal.
TEST_F(KernelStoreCpu, WidthsOfPadsAreNotConfused) {
  FusionExecutor executor(parseFusion("heddle 1\nfusion f(%x: f32[n], %a: i64, %b: i64) {\n"
                                      "  %y = pad(%x, 9.0, lows=[%a], highs=[%b])\n"
                                      "  %z = neg(%y)\n  return %z\n}\n"),
                          {device.get(), nullptr, &images});
  for (int64_t low : {0, 1, 2, 1, 0}) {
    const Outputs outputs = executor.run({tensor({3}), Scalar(low), Scalar(2 - low)});
    outputs.wait();
    std::vector<float> expected(5, -9);
    for (int64_t i = 0; i < 3; ++i)
      expected[static_cast<size_t>(low + i)] = -0.25F * static_cast<float>(i);
    EXPECT_EQ(testing::floatsOf(*device, outputs[0]), expected) << low;
  }
}

}  // namespace
}  // namespace heddle::host::kernel_store_cpu_test
