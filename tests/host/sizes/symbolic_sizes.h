#pragma once

#include <gtest/gtest.h>

#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::symbolic_sizes {

// Returns the extent after broadcasting by NumPy's rule: the extents are equal, or one of them is
// 1.
inline std::optional<int64_t> broadcast(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  return a == 1 ? std::optional(b) : std::nullopt;
}

// Returns the index that element i of a broadcast axis reads. `n` is the extent before
// broadcasting.
inline int64_t at(int64_t i, int64_t n) { return n == 1 ? 0 : i; }

// Adds %x: f32[n?, 2] and %y: f32[m?, k?] for all extents up to 3, each in two runs, with one
// executor. Compares the sums and their row totals with NumPy's rule.
inline void expectAllPairs(Device& device) {
  FusionExecutor executor(parseFusion("heddle 1\n"
                                      "fusion f(%x: f32[n?, 2], %y: f32[m?, k?]) {\n"
                                      "  %a = add(%x, %y)\n  %s = sum(%a, axes=[0])\n"
                                      "  return %a, %s\n}\n"),
                          {&device});
  for (int64_t run = 0; run < 2 * 4 * 4 * 2; ++run) {
    const int64_t n = run % 4, m = run / 4 % 4, k = 1 + run / 16 % 2;
    const auto xs = testing::ramp(static_cast<size_t>(n * 2), 1, 1);
    const auto ys = testing::ramp(static_cast<size_t>(m * k), 10, 10);
    const std::vector<Argument> inputs = {testing::deviceFloats(device, xs, {n, 2}),
                                          testing::deviceFloats(device, ys, {m, k})};
    const std::optional<int64_t> rows = broadcast(n, m);
    if (!rows) {
      const std::string error = testing::userErrorOf([&] { executor.run(inputs); });
      EXPECT_NE(error.find("axis 0 of %x"), std::string::npos) << error;
      EXPECT_NE(error.find(fmt::format("n = {}", n)), std::string::npos) << error;
      EXPECT_NE(error.find(fmt::format("m = {}", m)), std::string::npos) << error;
      continue;
    }
    std::vector<float> sums, totals(2, 0.0F);
    for (int64_t i = 0; i < *rows; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        sums.push_back(xs[static_cast<size_t>(at(i, n) * 2 + j)] +
                       ys[static_cast<size_t>(at(i, m) * k + at(j, k))]);
        totals[static_cast<size_t>(j)] += sums.back();
      }
    }
    const Outputs outputs = executor.run(inputs);
    outputs.wait();
    const std::string where = fmt::format("n = {}, m = {}, k = {}", n, m, k);
    EXPECT_EQ(std::get<Tensor>(outputs[0]).desc.sizes, (std::vector<int64_t>{*rows, 2})) << where;
    EXPECT_EQ(testing::floatsOf(device, outputs[0]), sums) << where;
    EXPECT_EQ(testing::floatsOf(device, outputs[1]), totals) << where;
  }
  EXPECT_EQ(executor.stats().programs, 8);  // each size is 1 or not
}

}  // namespace heddle::host::symbolic_sizes
