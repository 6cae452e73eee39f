#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

// Attributes of ops that are scalars of a run. The expected values follow from the definitions in
// PyTorch. Every element of %x[4, 5] is another number.
namespace heddle::host::scalar_attributes {

constexpr int64_t kRows = 4, kColumns = 5;

inline float element(int64_t row, int64_t column) {
  return static_cast<float>((row * kColumns + column) * 7 % 20);
}

class Runner {
 public:
  Runner(Device& device, const std::string& scalars, const std::string& statements)
      : device_(device),
        executor_(parseFusion("heddle 1\nfusion f(%x: f32[t, h], " + scalars + ") {\n" +
                              statements + "}\n"),
                  {&device}) {
    std::vector<float> values;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      values.push_back(element(i / kColumns, i % kColumns));
    }
    x_ = testing::deviceFloats(device, values, {kRows, kColumns});
  }

  // Returns the elements of each output.
  std::vector<std::vector<double>> run(const std::vector<Scalar>& scalars) {
    std::vector<Argument> inputs = {x_};
    inputs.insert(inputs.end(), scalars.begin(), scalars.end());
    const Outputs outputs = executor_.run(inputs);
    outputs.wait();
    std::vector<std::vector<double>> values;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const HostTensor host = toHost(device_, std::get<Tensor>(outputs[i]));
      values.emplace_back();
      for (int64_t k = 0; k < host.numel(); ++k) values.back().push_back(toDouble(host.at(k)));
    }
    return values;
  }
  int64_t plans() const { return executor_.stats().plans; }

 private:
  Device& device_;
  FusionExecutor executor_;
  Tensor x_;
};

inline Scalar integer(int64_t value) { return value; }

inline void expectSelect(Device& device) {
  Runner runner(device, "%i: i64",
                "  %r = select(%x, axis=0, index=%i)\n  %y = neg(%r)\n  return %y\n");
  for (int64_t i = 0; i < kRows; ++i) {
    std::vector<double> expected;
    for (int64_t c = 0; c < kColumns; ++c) expected.push_back(-element(i, c));
    EXPECT_EQ(runner.run({integer(i)})[0], expected) << i;
  }
  EXPECT_EQ(runner.plans(), 1);
  for (const int64_t wrong : {int64_t{-1}, kRows}) {
    EXPECT_NE(testing::userErrorOf([&] { runner.run({integer(wrong)}); }).find("%i"),
              std::string::npos);
  }
}

inline void expectTriangles(Device& device) {
  Runner runner(device, "%d: i64",
                "  %l = tril(%x, diagonal=%d)\n  %u = triu(%x, diagonal=2*%d)\n  return %l, %u\n");
  for (int64_t d = -5; d <= 5; ++d) {
    std::vector<double> lower, upper;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const int64_t row = i / kColumns, column = i % kColumns;
      lower.push_back(column - row <= d ? element(row, column) : 0);
      upper.push_back(column - row >= 2 * d ? element(row, column) : 0);
    }
    const auto results = runner.run({integer(d)});
    EXPECT_EQ(results[0], lower) << d;
    EXPECT_EQ(results[1], upper) << d;
  }
  EXPECT_EQ(runner.plans(), 1);  // the diagonal is an argument of the kernel
}

// Tests diagonals at a scalar offset. The offset decides the length of the diagonal, so each value
// needs a plan.
inline void expectDiagonals(Device& device) {
  Runner runner(device, "%d: i64",
                "  %y = diagonal(%x, offset=%d)\n  %s = sum(%y)\n"
                "  %t = diagonal(%x, offset=1 - %d, axis1=1, axis2=0)\n  return %y, %s, %t\n");
  const auto diagonalOf = [](int64_t offset) {  // the elements with column - row = offset
    std::vector<double> elements;
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t column = row + offset;
      if (column >= 0 && column < kColumns) elements.push_back(element(row, column));
    }
    return elements;
  };
  for (int64_t d = -kRows - 1; d <= kColumns + 1; ++d) {
    const auto results = runner.run({integer(d)});
    const std::vector<double> expected = diagonalOf(d);
    EXPECT_EQ(results[0], expected) << d;
    EXPECT_EQ(results[1][0], std::accumulate(expected.begin(), expected.end(), 0.0)) << d;
    EXPECT_EQ(results[2], diagonalOf(d - 1)) << d;
  }
}

inline void expectTopk(Device& device) {
  Runner runner(device, "%k: i64", "  %v, %i = topk(%x, k=%k, axis=1, most=3)\n  return %v, %i\n");
  for (int64_t k = 0; k <= 3; ++k) {
    std::vector<double> values, indices;
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<std::pair<double, int64_t>> sorted;
      for (int64_t c = 0; c < kColumns; ++c) sorted.emplace_back(-element(row, c), c);
      std::sort(sorted.begin(), sorted.end());
      for (int64_t j = 0; j < k; ++j) {
        values.push_back(-sorted[static_cast<size_t>(j)].first);
        indices.push_back(static_cast<double>(sorted[static_cast<size_t>(j)].second));
      }
    }
    const auto results = runner.run({integer(k)});
    EXPECT_EQ(results[0], values) << k;
    EXPECT_EQ(results[1], indices) << k;
  }
  for (const int64_t wrong : {-1, 4}) {
    EXPECT_NE(testing::userErrorOf([&] { runner.run({integer(wrong)}); }).find("topk at line"),
              std::string::npos);
  }
}

inline void expectRanges(Device& device) {
  Runner runner(device, "%a: i64, %b: i64",
                "  %r = arange(start=%a, stop=%b, step=3)\n"
                "  %f = arange(start=%b, stop=%a, step=-2, dtype=f32)\n"
                "  %s = slice_axis(%x, axis=1, start=%a, stop=%b)\n  return %r, %f, %s\n");
  for (const auto& [a, b] : {std::pair{-4, 9}, {0, 3}, {1, 4}, {5, 2}, {2, 2}, {-9, -1}}) {
    std::vector<double> up, down, slice;
    for (int64_t i = a; i < b; i += 3) up.push_back(static_cast<double>(i));
    for (int64_t i = b; i > a; i -= 2) down.push_back(static_cast<double>(i));
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t c = std::max(a, 0); c < std::min<int64_t>(b, kColumns); ++c) {
        slice.push_back(element(row, c));
      }
    }
    const auto results = runner.run({integer(a), integer(b)});
    EXPECT_EQ(results[0], up) << a << " to " << b;
    EXPECT_EQ(results[1], down) << a << " to " << b;
    EXPECT_EQ(results[2], slice) << a << " to " << b;
  }
}

// Tests dropout with a scalar p. The mask must equal that of the attribute p, because both compare
// the same random bits with p.
inline void expectDropout(Device& device) {
  Runner runner(device, "%p: f64",
                "  %y, %m = dropout(%x, 5, 9, %p)\n  %g = dropout_backward(%x, %m, %p)\n"
                "  %l = clamp(%x, %p, 3.0)\n  return %y, %m, %g, %l\n");
  for (const double p : {0.0, 0.25, 0.75, 1.0, -1.0, 2.0}) {
    const double chance = std::clamp(p, 0.0, 1.0);
    Runner fixed(device, "%p: f64",
                 fmt::format("  %y, %m = dropout(%x, 5, 9, p={})\n  return %y, %m\n", chance));
    const auto results = runner.run({Scalar(p)});
    const auto expected = fixed.run({Scalar(0.0)});
    EXPECT_EQ(results[0], expected[0]) << p;
    EXPECT_EQ(results[1], expected[1]) << p;
    EXPECT_EQ(results[2], expected[0]) << p;
    for (size_t i = 0; i < results[3].size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      EXPECT_EQ(results[3][i],
                std::min(std::max<double>(element(at / kColumns, at % kColumns), p), 3.0));
    }
  }
  EXPECT_EQ(runner.plans(), 1);
}

}  // namespace heddle::host::scalar_attributes
