// Compares quotients by hd::Divisor (codegen/runtime/cuda_runtime.h) with divisions.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "codegen/frame/kernel_frame.h"

namespace heddle::codegen::cuda_runtime_divisor_test {
namespace {

// Returns the words that a kernel receives for the divisor: the divisor, then its inverse.
std::array<uint64_t, 2> argumentsOf(int64_t divisor) {
  ArgumentLayout layout;
  layout.addDivisor("n", divisor);
  LaunchStage stage;
  layout.moveInto(stage);
  std::array<uint64_t, 2> words{};
  EXPECT_EQ(stage.args.size(), sizeof(words));
  std::memcpy(words.data(), stage.args.data(), sizeof(words));
  return words;
}

TEST(CudaRuntimeDivisor, QuotientsAreExactForAllNarrowIndices) {
  constexpr int64_t kEnd = int64_t{1} << 31;
  std::mt19937_64 random(1);
  std::vector<int64_t> divisors = {kEnd - 1};
  for (int64_t d = 1; d <= 1000; ++d) divisors.push_back(d);
  for (int64_t power = 4; power < kEnd; power *= 2) {
    divisors.insert(divisors.end(), {power - 1, power, power + 1});
  }
  for (int i = 0; i < 1000; ++i)
    divisors.push_back(1 + static_cast<int64_t>(random() % (kEnd - 1)));
  for (const int64_t d : divisors) {
    const auto [divisor, inverse] = argumentsOf(d);
    ASSERT_EQ(divisor, static_cast<uint64_t>(d));
    const int64_t last = (kEnd - 1) / d * d;  // the largest multiple
    std::vector<int64_t> dividends = {0, 1, d - 1, d, last - 1, last, kEnd - 1};
    for (int i = 0; i < 20; ++i) dividends.push_back(static_cast<int64_t>(random() % kEnd));
    for (const int64_t n : dividends) {
      const uint64_t product = 2 * static_cast<uint64_t>(n) * (inverse & 0xffffffffu);
      ASSERT_EQ(product >> 32 >> (inverse >> 32), static_cast<uint64_t>(n / d)) << n << " / " << d;
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::cuda_runtime_divisor_test
