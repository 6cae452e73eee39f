// Tests whether two tensors have a byte in common. The reference marks the bytes of all elements.
#include "host/unroll/overlap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/host/executable_common.h"

namespace heddle::host::overlap_test {
namespace {

TensorDesc descOf(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  TensorDesc desc = denseDesc(dtype, sizes);
  desc.strides = std::move(strides);
  return desc;
}

std::set<int64_t> bytesOf(const TensorInMemory& tensor) {
  std::set<int64_t> bytes;
  const TensorDesc& desc = tensor.desc;
  for (int64_t flat = 0; flat < desc.numel(); ++flat) {
    int64_t rest = flat, offset = 0;
    for (size_t axis = desc.rank(); axis-- > 0;) {
      offset += rest % desc.sizes[axis] * desc.strides[axis];
      rest /= desc.sizes[axis];
    }
    for (int64_t byte = 0; byte < sizeOf(desc.dtype); ++byte) {
      bytes.insert(tensor.begin + offset * sizeOf(desc.dtype) + byte);
    }
  }
  return bytes;
}

bool haveCommonByte(const TensorInMemory& a, const TensorInMemory& b) {
  const std::set<int64_t> of_a = bytesOf(a), of_b = bytesOf(b);
  return std::any_of(of_a.begin(), of_a.end(), [&](int64_t byte) { return of_b.contains(byte); });
}

TEST(Overlap, InterleavedTensorsShareNothing) {
  const TensorDesc pairs = descOf(DType::F32, {1000000}, {2});
  EXPECT_EQ(sharingOf({pairs, 0}, {pairs, 4}), Sharing::Nothing);
  EXPECT_EQ(sharingOf({pairs, 0}, {pairs, 8}), Sharing::Bytes);
  EXPECT_EQ(sharingOf({pairs, 0}, {pairs, 8000000}), Sharing::Nothing);
  // The diagonal of a matrix, and the diagonal above it.
  const TensorDesc diagonal = descOf(DType::F32, {1000}, {1001});
  EXPECT_EQ(sharingOf({diagonal, 0}, {diagonal, 4}), Sharing::Nothing);
  EXPECT_EQ(sharingOf({diagonal, 0}, {diagonal, 1001 * 4}), Sharing::Bytes);
  // A matrix of 1000 x 1000 elements: odd columns of even rows, and even columns of odd rows.
  const TensorDesc quarter = descOf(DType::F32, {500, 500}, {2000, 2});
  EXPECT_EQ(sharingOf({quarter, 4}, {quarter, 4000}), Sharing::Nothing);
  // The first column and a row that begins at the second column.
  const TensorDesc column = descOf(DType::F32, {1000}, {1000});
  const TensorDesc row = descOf(DType::F32, {999}, {1});
  EXPECT_EQ(sharingOf({column, 0}, {row, 4}), Sharing::Nothing);
  EXPECT_EQ(sharingOf({column, 0}, {row, 8}), Sharing::Bytes);
}

TEST(Overlap, ElementsOfDifferentTypesAreComparedByBytes) {
  const TensorDesc wide = descOf(DType::F32, {4}, {2});  // the bytes 0 to 3, 8 to 11, ...
  const TensorDesc narrow = descOf(DType::U8, {4}, {8});
  EXPECT_EQ(sharingOf({wide, 0}, {narrow, 3}), Sharing::Bytes);
  EXPECT_EQ(sharingOf({wide, 0}, {narrow, 4}), Sharing::Nothing);
  EXPECT_EQ(sharingOf({narrow, 4}, {wide, 0}), Sharing::Nothing);
  EXPECT_EQ(sharingOf({narrow, 3}, {wide, 0}), Sharing::Bytes);
}

// The offsets fit no grid, and no two elements share a byte. The search ends at its limit before it
// knows.
TEST(Overlap, LongSearchHasNoAnswer) {
  const TensorDesc a = descOf(DType::U8, {30, 30}, {1000003, 999983});
  const TensorDesc b = descOf(DType::U8, {30, 30}, {1000033, 999979});
  EXPECT_FALSE(haveCommonByte({a, 0}, {b, 1}));
  const Sharing found = sharingOf({a, 0}, {b, 1});
  EXPECT_EQ(found, Sharing::Unknown);
  EXPECT_FALSE(areApart(TensorInMemory{a, 0}, TensorInMemory{b, 1}));
}

TEST(Overlap, RandomTensorsAgreeWithTheirBytes) {
  std::mt19937 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random()) % n; };
  const DType dtypes[] = {DType::U8, DType::F16, DType::F32};
  int shared = 0, apart = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto tensor = [&] {
      std::vector<int64_t> sizes, strides;
      for (int64_t axis = 1 + below(3); axis > 0; --axis) {
        sizes.push_back(1 + below(5));
        strides.push_back(1 + below(12));
      }
      return descOf(dtypes[below(3)], sizes, strides);
    };
    const TensorDesc first = tensor();
    TensorDesc second = tensor();
    if (below(2) == 0 && second.rank() == first.rank()) second.strides = first.strides;
    const TensorInMemory a{first, 0};
    const TensorInMemory b{second, below(60) - 20};
    const bool common = haveCommonByte(a, b);
    EXPECT_EQ(sharingOf(a, b), common ? Sharing::Bytes : Sharing::Nothing) << i;
    EXPECT_EQ(sharingOf(b, a), common ? Sharing::Bytes : Sharing::Nothing) << i;
    ++(common ? shared : apart);
  }
  EXPECT_GT(shared, 500);
  EXPECT_GT(apart, 500);
}

}  // namespace
}  // namespace heddle::host::overlap_test
