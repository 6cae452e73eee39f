#pragma once

#include <gtest/gtest.h>

#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::late_scalars {

using testing::deviceFloats;
using testing::floatsOf;
using testing::ramp;
using testing::userErrorOf;

inline Scalar integer(int64_t value) { return value; }

// %i is also an operand of a kernel, and %row is returned as a view of the cache.
inline constexpr const char* kRow =
    "fusion f(%cache: f32[t, 3], %i: i64) {\n"
    "  %row = slice(%cache, starts=[%i, 0], stops=[%i + 1, 3])\n"
    "  %y = mul(%row, %i)\n  return %y, %row\n}\n";

inline Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }

// Requires that runs that step over the rows of a cache share a plan, and that rows out of range
// are errors.
inline void expectStepsShareAPlan(Device& device) {
  FusionExecutor executor(fusionOf(kRow), {&device});
  const Tensor cache = deviceFloats(device, ramp(24, 0, 1), {8, 3});
  for (int64_t i = 3; i < 11; ++i) {
    const int64_t at = i % 8;
    const Outputs outputs = executor.run({cache, integer(at)});
    outputs.wait();
    const auto first = static_cast<float>(3 * at), factor = static_cast<float>(at);
    EXPECT_EQ(floatsOf(device, outputs[0]), ramp(3, first * factor, factor));
    EXPECT_EQ(floatsOf(device, outputs[1]), ramp(3, first, 1));
  }
  EXPECT_EQ(executor.stats().plans, 1);
  for (const int64_t wrong : {-1, 8, 1 << 20}) {
    EXPECT_NE(userErrorOf([&] {
                executor.run({cache, integer(wrong)});
              }).find(fmt::format("%i = {} is", wrong)),
              std::string::npos);
  }
  const Tensor longer = deviceFloats(device, ramp(30, 0, 1), {10, 3});
  EXPECT_EQ(floatsOf(device, executor.run({longer, integer(9)})[1]), ramp(3, 27, 1));
  EXPECT_EQ(executor.stats().plans, 2);
  EXPECT_EQ(executor.stats().programs, 1);
}

// Requires that a tensor without axes in host memory is a late input as well. A kernel also reads
// its value, and %k is computed from it.
inline void expectTensorsOnTheHostShareAPlan(Device& device) {
  FusionExecutor executor(
      fusionOf("fusion f(%cache: f32[t, 3], %i: i64[], %j: i32[]) {\n  %k = add(%i, 1)\n"
               "  %row = slice(%cache, starts=[%i, 0], stops=[%k, 3])\n"
               "  %last = slice(%cache, starts=[t - %j, 0], stops=[t - %j + 1, 3])\n"
               "  %a = mul(%row, %i)\n  %y = add(%a, %last)\n  return %y, %row\n}\n"),
      {&device});
  const Tensor cache = deviceFloats(device, ramp(24, 0, 1), {8, 3});
  const auto run = [&](int64_t i, int32_t j) {
    const Tensor first{&i, denseDesc(DType::I64, {}), nullptr, true};
    const Tensor second{&j, denseDesc(DType::I32, {}), nullptr, true};
    Outputs outputs = executor.run({cache, first, second});
    outputs.wait();
    return outputs;
  };
  for (const auto& [i, j] : {std::pair{3, 1}, {0, 8}, {7, 2}, {3, 5}}) {
    const Outputs outputs = run(i, j);
    const auto first = static_cast<float>(3 * i), last = static_cast<float>(3 * (8 - j));
    const auto factor = static_cast<float>(i);
    EXPECT_EQ(floatsOf(device, outputs[0]), ramp(3, first * factor + last, factor + 1));
    EXPECT_EQ(floatsOf(device, outputs[1]), ramp(3, first, 1));
  }
  EXPECT_EQ(executor.stats().plans, 1);
  EXPECT_NE(userErrorOf([&] { run(8, 1); }).find("%i = 8 is"), std::string::npos);
  EXPECT_NE(userErrorOf([&] { run(1, 9); }).find("%j = 9 is"), std::string::npos);
}

// Requires that runs share a plan if both bounds of a slice move with the scalar, and that each run
// reads the row `first + step * i`.
inline void expectMovedRowsShareAPlan(Device& device) {
  struct Case {
    std::string start, stop;
    int64_t first, step;
  };
  for (const Case& row : {Case{"%i + 1", "%i + 2", 1, 1}, Case{"%i - 1", "%i", -1, 1},
                          Case{"t - 1 - %i", "t - %i", 7, -1}}) {
    FusionExecutor executor(
        fusionOf("fusion f(%cache: f32[t, 3], %i: i64) {\n  %row = slice(%cache, starts=[" +
                 row.start + ", 0], stops=[" + row.stop + ", 3])\n  return %row\n}\n"),
        {&device});
    const Tensor cache = deviceFloats(device, ramp(24, 0, 1), {8, 3});
    for (const int64_t i : {3, 1, 6}) {
      const auto first = static_cast<float>(3 * (row.first + row.step * i));
      EXPECT_EQ(floatsOf(device, executor.run({cache, integer(i)})[0]), ramp(3, first, 1))
          << row.start << " at " << i;
    }
    EXPECT_EQ(executor.stats().plans, 1) << row.start;
  }
}

// Requires that runs share a plan if the widths of a pad only shift elements. The shift may be as
// long as the axis, or longer.
inline void expectShiftsShareAPlan(Device& device) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t, 3], %i: i64) {\n  %y = neg(%x)\n"
                                   "  %s = pad(%y, 0.5, lows=[%i, 0], highs=[1 - %i, 0])\n"
                                   "  %z = add(%s, 1.0)\n  return %s, %z\n}\n"),
                          {&device});
  const Tensor x = deviceFloats(device, ramp(12, 1, 1), {4, 3});
  for (const int64_t i : {1, 0, -1, 3, 5, -4, 100, -100}) {
    const Outputs outputs = executor.run({x, integer(i)});
    outputs.wait();
    std::vector<float> shifted(15, 0.5F), added;
    for (int64_t row = 0; row < 5; ++row) {
      if (row - i < 0 || row - i >= 4) continue;
      for (int64_t column = 0; column < 3; ++column) {
        shifted[static_cast<size_t>(3 * row + column)] =
            -static_cast<float>(3 * (row - i) + column + 1);
      }
    }
    for (const float element : shifted) added.push_back(element + 1);
    EXPECT_EQ(floatsOf(device, outputs[0]), shifted) << i;
    EXPECT_EQ(floatsOf(device, outputs[1]), added) << i;
  }
  EXPECT_EQ(executor.stats().plans, 1);
}

// A row of a computed cache is read by a kernel. The cache is stored in a tensor of the caller that
// is aligned to 4 bytes only, so the kernel must not read vectors of 16 bytes.
inline void expectRowsOfUnalignedOutputsAreRead(Device& device) {
  FusionExecutor executor(parseFusion("heddle 1\nfusion f(%x: f32[t, 64], %i: i64) {\n"
                                      "  %cache = mul(%x, 2.0)\n"
                                      "  %row = slice(%cache, starts=[%i, 0], stops=[%i + 1, 64])\n"
                                      "  %y = neg(%row)\n  return %cache, %y, %row\n}\n"),
                          {&device});
  const Tensor x = deviceFloats(device, ramp(6 * 64, 0, 1), {6, 64});
  const Tensor memory = deviceFloats(device, ramp(7 * 64, 0, 0), {7, 64});
  Tensor cache = memory;
  cache.desc = x.desc;
  cache.data = static_cast<std::byte*>(memory.data) + sizeof(float);
  RunOptions options;
  options.preallocated = {cache};
  for (const int64_t i : {2, 0, 5}) {
    const Outputs outputs = executor.run({x, integer(i)}, options);
    outputs.wait();
    const auto first = static_cast<float>(128 * i);
    EXPECT_EQ(floatsOf(device, outputs[1]), ramp(64, -first, -2));
    EXPECT_EQ(floatsOf(device, outputs[2]), ramp(64, first, 2));
  }
}

}  // namespace heddle::host::late_scalars
