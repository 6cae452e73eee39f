#pragma once

#include <gtest/gtest.h>

#include "host/compile.h"
#include "host/fusion_executor.h"
#include "host/program/visit.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/rank_harness.h"

// Tests views: values that are in the memory of an input or of another value, without a kernel.
namespace heddle::host::views {

using testing::deviceFloats;
using testing::ramp;
using testing::userErrorOf;

inline Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }

// Returns the number of launches, library calls and copies in the program of a fusion.
inline int workOf(const Fusion& fusion, int ranks = 1) {
  int count = 0;
  const Program program = compile(fusion, ranks);
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    count += kindOf(x.op) == InstructionKind::Work ? 1 : 0;
  });
  return count;
}

inline const Tensor& tensor(const Outputs& outputs, size_t i) {
  return std::get<Tensor>(outputs[i]);
}

inline HostTensor values(Device& device, const Outputs& outputs, size_t i) {
  return toHost(device, tensor(outputs, i));
}

// Requires that every output is a view of %x, with the offset and the strides of its chain of
// views.
inline void expectChainsWithoutKernel(Device& device) {
  const Fusion fusion = fusionOf(
      "fusion f(%x: f32[a, b]) with n = 4 {\n"
      "  %u = unsqueeze(%x, axis=1)\n  %e = expand(%u, sizes=[a, n, b])\n"
      "  %p = permute(%e, axes=[2, 1, 0])\n"
      "  %s = slice(%p, starts=[1, 0, 0], stops=[b, n, a])\n"
      "  %r = reshape(%e, sizes=[a, 2, -1, b])\n"
      "  return %u, %e, %p, %s, %r\n}\n");
  EXPECT_EQ(workOf(fusion), 0);
  FusionExecutor executor(fusion, {&device});
  const Tensor x = deviceFloats(device, ramp(15, 0, 1), {3, 5});
  const Outputs outputs = executor.run({x});
  outputs.wait();
  using Strides = std::vector<int64_t>;
  EXPECT_EQ(tensor(outputs, 1).desc.strides, (Strides{5, 0, 1}));
  EXPECT_EQ(tensor(outputs, 2).desc.strides, (Strides{1, 0, 5}));
  EXPECT_EQ(tensor(outputs, 4).desc.strides, (Strides{5, 0, 0, 1}));
  std::vector<HostTensor> got;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs.aliased(i), (AliasedTensor{true, 0})) << i;
    const auto offset =
        static_cast<const float*>(tensor(outputs, i).data) - static_cast<const float*>(x.data);
    EXPECT_EQ(offset, i == 3 ? 1 : 0) << i;
    got.push_back(values(device, outputs, i));
  }
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t n = 0; n < 4; ++n) {
      for (int64_t b = 0; b < 5; ++b) {
        const auto want = static_cast<double>(5 * a + b);
        ASSERT_EQ(toDouble(got[1].at((a * 4 + n) * 5 + b)), want);
        ASSERT_EQ(toDouble(got[2].at((b * 4 + n) * 3 + a)), want);
        ASSERT_EQ(toDouble(got[4].at((a * 4 + n) * 5 + b)), want);
        if (b == 0) continue;
        ASSERT_EQ(toDouble(got[3].at(((b - 1) * 4 + n) * 3 + a)), want);
      }
    }
  }
}

// Tests views whose offset and sizes come from scalars. A new offset alone needs no new plan.
inline void expectOffsetsAndSizesOfScalars(Device& device) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t, 3], %i: i64, %n: i64) {\n"
                                   "  %row = slice(%x, starts=[%i, 0], stops=[%i + 1, 3])\n"
                                   "  %e = expand(%row, sizes=[%n, 3])\n"
                                   "  %p = permute(%e, axes=[1, 0])\n  return %p\n}\n"),
                          {&device});
  const Tensor x = deviceFloats(device, ramp(24, 0, 1), {8, 3});
  for (const int64_t n : {1, 4, 0}) {
    for (const int64_t i : {0, 3, 7}) {
      const Outputs outputs = executor.run({x, Scalar(i), Scalar(n)});
      outputs.wait();
      ASSERT_EQ(tensor(outputs, 0).desc.sizes, (std::vector<int64_t>{3, n}));
      EXPECT_EQ(outputs.aliased(0), (AliasedTensor{true, 0}));
      const HostTensor got = values(device, outputs, 0);
      for (int64_t k = 0; k < 3 * n; ++k) {
        ASSERT_EQ(toDouble(got.at(k)), static_cast<double>(3 * i + k / n));
      }
    }
  }
  EXPECT_EQ(executor.stats().plans, 3);
  for (const auto& [first, count] : {std::pair{8, 2}, {0, -2}}) {
    const int64_t i = first, n = count;
    const std::string why = userErrorOf([&] { executor.run({x, Scalar(i), Scalar(n)}); });
    EXPECT_NE(why.find(i == 8 ? "%i + 1 = 9" : "%n = -2"), std::string::npos) << why;
  }
}

// Requires that the kernel stores one element per row, and that both outputs are in this memory.
inline void expectComputedValueStoredOnce(Device& device) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[a, b]) {\n"
                                   "  %s = sum(%x, axes=[1], keepdim=true)\n"
                                   "  %e = expand(%s, sizes=[a, 1000])\n  return %s, %e\n}\n"),
                          {&device});
  TrackingAllocator tracking(device.allocator());
  RunOptions options;
  options.allocator = &tracking;
  const Tensor x = deviceFloats(device, ramp(6, 1, 1), {2, 3});
  {
    const Outputs outputs = executor.run({x}, options);
    outputs.wait();
    EXPECT_EQ(outputs.aliased(0), std::nullopt);
    EXPECT_EQ(outputs.aliased(1), (AliasedTensor{false, 0}));
    EXPECT_THROW(outputs.aliased(2), UserError);
    EXPECT_EQ(tensor(outputs, 1).desc.strides.back(), 0);
    const HostTensor got = values(device, outputs, 1);
    for (int64_t k = 0; k < 2000; ++k) ASSERT_EQ(toDouble(got.at(k)), k < 1000 ? 6 : 15);
    EXPECT_LE(tracking.peakBytes(), 1024);
  }
  EXPECT_EQ(tracking.heldBytes(), 0);
}

// Requires that the elements of a view are copied to a preallocated output.
inline void expectCopyInPreallocatedOutput(Device& device) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[3]) with n = 2 {\n"
                                   "  %e = expand(%x, sizes=[n, 3])\n  return %e\n}\n"),
                          {&device});
  const Tensor x = deviceFloats(device, {1, 2, 3}, {3});
  RunOptions options;
  options.preallocated = {deviceFloats(device, ramp(6, -9, 0), {2, 3})};
  const Outputs outputs = executor.run({x}, options);
  outputs.wait();
  EXPECT_EQ(outputs.aliased(0), std::nullopt);
  EXPECT_EQ(testing::floatsOf(device, options.preallocated[0]),
            (std::vector<float>{1, 2, 3, 1, 2, 3}));
}

inline void expectDenseMemoryForRequiredOrder(Device& device) {
  const Fusion fusion = fusionOf(
      "fusion f(%x: f32[3]) with n = 2 {\n"
      "  %e = expand(%x, sizes=[n, 3]) order=[1, 0]\n  return %e\n}\n");
  EXPECT_EQ(workOf(fusion), 1);
  FusionExecutor executor(fusion, {&device});
  const Outputs outputs = executor.run({deviceFloats(device, {1, 2, 3}, {3})});
  outputs.wait();
  EXPECT_EQ(tensor(outputs, 0).desc.strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(outputs.aliased(0), std::nullopt);
  EXPECT_EQ(testing::floatsOf(device, outputs[0]), (std::vector<float>{1, 2, 3, 1, 2, 3}));
}

// Tests diagonals above and below the main one, also those without elements, of matrices of several
// shapes.
inline void expectDiagonals(Device& device) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 6}, {6, 4}, {3, 3}, {1, 5}}) {
    const Tensor x = deviceFloats(device, ramp(static_cast<size_t>(2 * rows * columns), 0, 1),
                                  {rows, 2, columns});
    for (int64_t offset = -7; offset <= 7; ++offset) {
      const Fusion fusion =
          fusionOf(fmt::format("fusion f(%x: f32[a, b, c]) {{\n"
                               "  %d = diagonal(%x, offset={}, axis1=0, axis2=-1)\n"
                               "  %t = sum(%d, axes=[1])\n  return %d, %t\n}}\n",
                               offset));
      FusionExecutor executor(fusion, {&device});
      const Outputs outputs = executor.run({x});
      outputs.wait();
      const int64_t first_row = std::max<int64_t>(-offset, 0);
      const int64_t first_column = std::max<int64_t>(offset, 0);
      const int64_t length =
          std::max<int64_t>(std::min(rows - first_row, columns - first_column), 0);
      ASSERT_EQ(tensor(outputs, 0).desc.sizes, (std::vector<int64_t>{2, length}));
      EXPECT_EQ(outputs.aliased(0), (AliasedTensor{true, 0}));
      const HostTensor diagonal = values(device, outputs, 0);
      const HostTensor traces = values(device, outputs, 1);
      for (int64_t b = 0; b < 2; ++b) {
        double trace = 0;
        for (int64_t i = 0; i < length; ++i) {
          const int64_t at = ((first_row + i) * 2 + b) * columns + first_column + i;
          ASSERT_EQ(toDouble(diagonal.at(b * length + i)), static_cast<double>(at)) << offset;
          trace += static_cast<double>(at);
        }
        EXPECT_EQ(toDouble(traces.at(b)), trace) << offset;
      }
    }
  }
}

// Tests diagonals along sharded axes, and diagonals of a tensor that is sharded along a third axis.
inline void expectDiagonalsOnRanks(DeviceKind kind) {
  const Fusion fusion = fusionOf(R"(mesh @m = [x=ranks]
fusion f(%x: f32[a, b, c] shard(@m, 0: x)) {
  %inner = diagonal(%x, axis1=1, axis2=2)
  %outer = diagonal(%x, offset=1, axis1=0, axis2=2)
  %y = exp(%outer)
  %u = unsqueeze(%inner, axis=0)
  %e = expand(%u, sizes=[3, -1, -1])
  %d = diagonal(%e, axis1=0, axis2=2)
  return %inner, %outer, %y, %d
})");
  for (const int ranks : {1, 2, 3}) {
    testing::HarnessOptions options;
    options.ranks = ranks;
    options.kind = kind;
    options.sizes = {{"a", 5}, {"b", 3}, {"c", 4}};
    const auto got = testing::runProgram(compile(fusion, ranks), options);
    const auto want = testing::expectedOf(fusion, options);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(testing::relativeError(got[i], want[i]), 1e-6) << i << " on " << ranks;
    }
  }
}

// Tests an expand of a tensor without axes, which may be in host memory.
inline void expectExpandedScalarTensor(Device& device) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[], %y: f32[a]) with n = 3 {\n"
                                   "  %e = expand(%x, sizes=[n, a])\n  %m = mul(%e, %y)\n"
                                   "  return %e, %m\n}\n"),
                          {&device});
  const Tensor y = deviceFloats(device, {1, 2}, {2});
  float seven = 7;
  for (const bool in_host : {false, true}) {
    Tensor x = deviceFloats(device, {7}, {});
    if (in_host) {
      x = {&seven, denseDesc(DType::F32, {}), nullptr};
      x.in_host_memory = true;
    }
    const Outputs outputs = executor.run({x, y});
    outputs.wait();
    EXPECT_EQ(testing::floatsOf(device, outputs[0]), std::vector<float>(6, 7));
    EXPECT_EQ(testing::floatsOf(device, outputs[1]), (std::vector<float>{7, 14, 7, 14, 7, 14}));
  }
}

inline void expectErrorOfWrittenRepeat(Device& device) {
  const std::string why = userErrorOf([&] {
    Executable executable(testing::programOf("program p(%x: f32[3], %y: f32[2, 3]) -> (%e) {\n"
                                             "  slot %e: f32[2, 3]\n"
                                             "  %e = alias %x expand=[0]\n"
                                             "  copy %y -> %e stream=0\n}\n"),
                          {&device});
    executable.run(
        {deviceFloats(device, {1, 2, 3}, {3}), deviceFloats(device, ramp(6, 0, 1), {2, 3})});
  });
  EXPECT_NE(why.find("%e is written, but its 2 elements along axis 0 share one address"),
            std::string::npos)
      << why;
}

// Tests expands along a sharded axis and along another axis. An expanded value is stored before a
// collective reads it.
inline void expectResultOfOneRank(DeviceKind kind) {
  const Fusion fusion = fusionOf(R"(mesh @m = [x=ranks]
fusion f(%x: f32[a, b] shard(@m, 0: x), %v: f32[b]) with a = 5, b = 3, n = 7 {
  %u = broadcast(%x, axes=[1])
  %e = expand(%u, sizes=[a, n, b])
  %w = expand(%v, sizes=[a, b]) shard(@m, 0: x)
  %p = permute(%e, axes=[1, 0, 2])
  %sum = sum(%e, axes=[0, 1])
  %g = set(%w) shard(@m)
  %t = set(%e) shard(@m, 1: x)
  %s = slice(%p, starts=[1, 0, 0], stops=[n, a, b])
  return %e, %w, %p, %sum, %g, %t, %s
})");
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int64_t a : {5, 2}) {
      testing::HarnessOptions options;
      options.ranks = ranks;
      options.kind = kind;
      options.sizes = {{"a", a}, {"b", 3}, {"n", 7}};
      options.cpu.adversarial_seed = 5;
      const auto got = testing::runProgram(compile(fusion, ranks), options);
      const auto want = testing::expectedOf(fusion, options);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_LE(testing::relativeError(got[i], want[i]), 1e-6)
            << i << " on " << ranks << " " << a;
      }
    }
  }
}

}  // namespace heddle::host::views
