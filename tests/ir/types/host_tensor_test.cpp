#include "ir/types/host_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/base/error.h"

namespace heddle::host_tensor_test {
namespace {

HostTensor iota(std::vector<int64_t> sizes) {
  HostTensor tensor(DType::I64, std::move(sizes));
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, i);
  return tensor;
}

std::vector<int64_t> valuesOf(const HostTensor& tensor) {
  const auto* data = tensor.as<int64_t>();
  return {data, data + tensor.numel()};
}

TEST(HostTensor, NewTensorIsZeroAndCopiesShareMemory) {
  HostTensor a(DType::F32, {2, 3});
  EXPECT_EQ(a.numel(), 6);
  EXPECT_EQ(a.bytes(), 24);
  EXPECT_EQ(toDouble(a.at(5)), 0.0);
  HostTensor b = a;
  b.set(5, 1.5);
  EXPECT_EQ(toDouble(a.at(5)), 1.5);
  EXPECT_EQ(HostTensor(DType::F32, {}).numel(), 1);
  EXPECT_EQ(HostTensor(DType::F32, {0, 4}).numel(), 0);
}

TEST(HostTensor, ImpossibleSizesAreRefused) {
  EXPECT_THROW(HostTensor(DType::F32, {-1}), UserError);
  EXPECT_THROW(HostTensor(DType::F32, {int64_t{1} << 40, int64_t{1} << 40}), UserError);
}

TEST(HostTensor, RandomElementsDependOnSeedNameAndIndexOnly) {
  const HostTensor a = randomTensor(DType::F64, {100}, 1, "x");
  const HostTensor longer = randomTensor(DType::F64, {7, 50}, 1, "x");
  const HostTensor f32 = randomTensor(DType::F32, {100}, 1, "x");
  const HostTensor seed = randomTensor(DType::F64, {100}, 2, "x");
  const HostTensor name = randomTensor(DType::F64, {100}, 1, "y");
  int same_seed = 0;
  int same_name = 0;
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(a.at(i), longer.at(i));
    EXPECT_EQ(static_cast<float>(toDouble(a.at(i))), static_cast<float>(toDouble(f32.at(i))));
    same_seed += a.at(i) == seed.at(i);
    same_name += a.at(i) == name.at(i);
  }
  EXPECT_LT(same_seed, 5);
  EXPECT_LT(same_name, 5);
}

TEST(HostTensor, RandomFloatsHaveMeanZeroAndVarianceOne) {
  const int64_t n = 100000;
  const HostTensor x = randomTensor(DType::F64, {n}, 3, "x");
  double sum = 0;
  double squares = 0;
  double neighbours = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = x.as<double>()[i];
    sum += v;
    squares += v * v;
    if (i > 0) neighbours += v * x.as<double>()[i - 1];
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(neighbours / n, 0, 0.02);
}

TEST(HostTensor, RandomIntegersAndBoolsAreUniform) {
  const HostTensor ints = randomTensor(DType::I64, {4000}, 1, "i");
  std::vector<int> seen(16, 0);
  for (int64_t v : valuesOf(ints)) {
    ASSERT_GE(v, -8);
    ASSERT_LT(v, 8);
    ++seen[static_cast<size_t>(v + 8)];
  }
  for (int count : seen) EXPECT_NEAR(count, 250, 100);
  const HostTensor bools = randomTensor(DType::Bool, {4000}, 1, "b");
  int set = 0;
  for (int64_t i = 0; i < 4000; ++i) set += bools.at(i) == Scalar(true);
  EXPECT_NEAR(set, 2000, 200);
}

TEST(HostTensor, LocalBlockHoldsTheElementsOfTheRank) {
  TensorDesc desc = denseDesc(DType::I64, {2, 2});
  desc.global = {3, 4};
  desc.offset = {1, 2};
  EXPECT_EQ(valuesOf(localBlock(iota({3, 4}), desc)), (std::vector<int64_t>{6, 7, 10, 11}));
  desc.sizes = {0, 2};
  desc.offset = {3, 2};
  EXPECT_EQ(localBlock(iota({3, 4}), desc).numel(), 0);
}

TEST(HostTensor, PackAndUnpackFollowStrides) {
  // The tensor is [2, 3]. Its columns are outermost in memory, with a gap after each column.
  TensorDesc desc = denseDesc(DType::I64, {2, 3});
  desc.strides = {1, 4};
  std::vector<int64_t> memory(12, -1);
  packInto(memory.data(), desc, iota({2, 3}));
  EXPECT_EQ(memory, (std::vector<int64_t>{0, 3, -1, -1, 1, 4, -1, -1, 2, 5, -1, -1}));
  EXPECT_EQ(valuesOf(unpackFrom(memory.data(), desc)), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  desc.strides = {0, 4};  // stride 0: a broadcast axis
  EXPECT_EQ(valuesOf(unpackFrom(memory.data(), desc)), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
}

}  // namespace
}  // namespace heddle::host_tensor_test
