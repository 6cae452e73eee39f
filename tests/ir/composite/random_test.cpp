// Checks that the moments of random tensors differ from the moments of the distribution by at most
// five standard errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/base/check.h"
#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"

namespace heddle::random_test {
namespace {

constexpr int64_t kCount = 40000;

// Returns the raw moments 1 to 4 of each tensor that the calls create.
std::vector<std::vector<double>> momentsOf(const std::vector<std::string>& calls) {
  std::string body;
  std::string results;
  for (size_t i = 0; i < calls.size(); ++i) {
    body += fmt::format("  %r{} = {}\n", i, calls[i]);
    results += fmt::format("{}%r{}", i > 0 ? ", " : "", i);
  }
  const Fusion fusion =
      parseFusion("heddle 1 fusion f(%seed: i64 = 3) {\n" + body + "  return " + results + " }");
  std::vector<std::vector<double>> moments;
  for (const HostTensor& tensor : evaluateReference(fusion, {}, {})) {
    std::vector<double> sums(4, 0);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double value = toDouble(tensor.at(i));
      for (int k = 0; k < 4; ++k) sums[static_cast<size_t>(k)] += std::pow(value, k + 1) / kCount;
    }
    moments.push_back(sums);
  }
  return moments;
}

TEST(Random, MomentsMatchTheDistributions) {
  const auto moments =
      momentsOf({"uniform(%seed, 0, sizes=[40000])", "normal(%seed, 1, sizes=[200, 200])",
                 "bernoulli(%seed, 2, sizes=[40000], p=0.2)",
                 "randint(%seed, 3, sizes=[40000], low=-2, high=3)",
                 "uniform(%seed, 4, sizes=[40000], dtype=f64)"});
  const double error = 5 / std::sqrt(static_cast<double>(kCount));
  for (size_t uniform : {0, 4}) {
    for (int k = 1; k <= 4; ++k) {
      EXPECT_NEAR(moments[uniform][static_cast<size_t>(k - 1)], 1.0 / (k + 1), error);
    }
  }
  EXPECT_NEAR(moments[1][0], 0, error);
  EXPECT_NEAR(moments[1][1], 1, error * std::sqrt(2));
  EXPECT_NEAR(moments[1][2], 0, error * std::sqrt(15));
  EXPECT_NEAR(moments[1][3], 3, error * std::sqrt(96));
  EXPECT_NEAR(moments[2][0], 0.2, error * 0.4);
  EXPECT_NEAR(moments[3][0], 0, error * std::sqrt(2));
  EXPECT_NEAR(moments[3][1], 2, error * std::sqrt(2.8));
}

TEST(Random, SeedsOffsetsAndNeighboursAreUncorrelated) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f() {\n"
      "  %a = uniform(1, 0, sizes=[40000])\n  %b = uniform(1, 1, sizes=[40000])\n"
      "  %c = uniform(2, 0, sizes=[40000])\n  return %a, %b, %c }");
  const std::vector<HostTensor> t = evaluateReference(fusion, {}, {});
  auto correlation = [&](const HostTensor& x, const HostTensor& y, int64_t shift) {
    double sum = 0;
    for (int64_t i = 0; i + shift < kCount; ++i) {
      sum += (toDouble(x.at(i)) - 0.5) * (toDouble(y.at(i + shift)) - 0.5) * 12 / kCount;
    }
    return sum;
  };
  const double error = 5 / std::sqrt(static_cast<double>(kCount));
  EXPECT_NEAR(correlation(t[0], t[1], 0), 0, error);
  EXPECT_NEAR(correlation(t[0], t[2], 0), 0, error);
  for (int64_t shift : {1, 2, 7}) EXPECT_NEAR(correlation(t[0], t[0], shift), 0, error);
}

}  // namespace
}  // namespace heddle::random_test
