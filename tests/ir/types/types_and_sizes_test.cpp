// Tests dtypes, sizes, meshes and shardings, which all other parts use.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/base/dtype.h"
#include "ir/base/error.h"
#include "ir/types/sharding.h"
#include "ir/types/tensor.h"

namespace heddle::types_and_sizes_test {
namespace {

std::string messageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TypesAndSizes, Bf16RoundsToNearestEven) {
  // 1 + 2^-8 is in the middle between 1 and 1 + 2^-7, and 1 is even. 1 + 3 * 2^-8 rounds up to 1 +
  // 2^-6.
  EXPECT_EQ(floatFromBf16(bf16FromFloat(1.00390625f)), 1.0f);
  EXPECT_EQ(floatFromBf16(bf16FromFloat(1.01171875f)), 1.015625f);
  EXPECT_TRUE(std::isinf(floatFromBf16(bf16FromFloat(std::numeric_limits<float>::max()))));
  EXPECT_TRUE(std::isnan(floatFromBf16(bf16FromFloat(std::nanf("")))));
  EXPECT_TRUE(std::signbit(floatFromBf16(bf16FromFloat(-0.0f))));
}

TEST(TypesAndSizes, StoredElementsAreConvertedToTheirDtype) {
  double buffer[2];
  storeElement(buffer, DType::I64, 1, int64_t{-7});
  EXPECT_EQ(loadElement(buffer, DType::I64, 1), Scalar(int64_t{-7}));
  storeElement(buffer, DType::Bool, 3, 2.5);
  EXPECT_EQ(loadElement(buffer, DType::Bool, 3), Scalar(true));
  storeElement(buffer, DType::F32, 0, 0.1);
  EXPECT_EQ(loadElement(buffer, DType::F32, 0), Scalar(static_cast<double>(0.1f)));
  EXPECT_EQ(toInt(std::nan("")), 0);
  EXPECT_EQ(toInt(1e30), std::numeric_limits<int64_t>::max());
}

TEST(TypesAndSizes, SizesFoldAndCompare) {
  const Size t = Size::symbol("t");
  EXPECT_EQ(Size(2) * t, t * Size(2));
  EXPECT_EQ(t - t, Size(0));
  EXPECT_EQ(t * Size(1), t);
  EXPECT_EQ(Size::ceilDiv(Size(7), Size(2)), Size(4));
  EXPECT_EQ(Size::floorDiv(Size(-7), Size(2)), Size(-4));
  EXPECT_EQ(Size::mod(Size(-1), Size(4)), Size(3));
  EXPECT_FALSE(t == Size::symbol("h"));
}

TEST(TypesAndSizes, SizesPrintInfixWithNeededBrackets) {
  const Size t = Size::symbol("t");
  EXPECT_EQ((Size(2) * t + Size(1)).str(), "2*t + 1");
  EXPECT_EQ((Size(2) * (t + Size(1))).str(), "2*(t + 1)");
  EXPECT_EQ(Size::mod(t + Size(1), Size(2)).str(), "(t + 1) % 2");
  EXPECT_EQ(Size::ceilDiv(t, Size(4)).str(), "ceildiv(t, 4)");
  EXPECT_EQ((t - (t + Size(1))).str(), "t - (t + 1)");
}

TEST(TypesAndSizes, SizeErrorsNameTheExpression) {
  const Size t = Size::symbol("t");
  const SizeBindings big = {{"t", int64_t{1} << 40}};
  EXPECT_EQ((t + Size(1)).evaluate(lookupIn(big)), (int64_t{1} << 40) + 1);
  EXPECT_EQ(messageOf([&] { (t * t).evaluate(lookupIn(big)); }),
            "size 't*t' overflows 64 bits (operands 1099511627776 and 1099511627776)");
  EXPECT_EQ(messageOf([&] { Size::mod(t, t - t).evaluate(lookupIn(big)); }),
            "size 't % 0' divides by zero (operands 1099511627776 and 0)");
  EXPECT_EQ(messageOf([&] { Size::symbol("u").evaluate(lookupIn(big)); }), "size 'u' has no value");
}

DeviceMesh mesh2x3() { return {"m", {{MeshAxis::Y, 2}, {MeshAxis::X, 3}}, {}}; }

TEST(TypesAndSizes, MeshTeamsRunAlongAnyAxis) {
  const DeviceMesh mesh = mesh2x3();
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.coordinate(4, MeshAxis::Y), 1);
  EXPECT_EQ(mesh.coordinate(4, MeshAxis::X), 1);
  EXPECT_EQ(mesh.team(4, {MeshAxis::X}), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(mesh.team(4, {MeshAxis::Y}), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(mesh.team(4, {MeshAxis::Y, MeshAxis::X}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(mesh.team(4, {MeshAxis::X, MeshAxis::Y}), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  const DeviceMesh sub = {"s", {{MeshAxis::X, 2}}, {5, 2}};
  EXPECT_EQ(sub.team(2, {MeshAxis::X}), (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(sub.positionOf(0), -1);
}

TEST(TypesAndSizes, MeshTakesItsSizeFromTheJob) {
  DeviceMesh mesh = {"m", {{MeshAxis::Y, 2}, {MeshAxis::X, DeviceMesh::kFromJob}}, {}};
  EXPECT_EQ(mesh.str(), "@m = [y=2, x=ranks]");
  EXPECT_EQ(messageOf([&] { concretizeMesh(mesh, 3); }),
            "mesh @m = [y=2, x=ranks]: the job has 3 rank(s), but must have a multiple of 2, the "
            "product of the other axes");
  concretizeMesh(mesh, 6);
  EXPECT_EQ(mesh.size(MeshAxis::X), 3);
  DeviceMesh four = {"m", {{MeshAxis::X, 4}}, {}};
  EXPECT_EQ(messageOf([&] { concretizeMesh(four, 2); }),
            "mesh @m = [x=4] needs 4 ranks, the job has 2");
}

TEST(TypesAndSizes, BlocksCoverTheAxisOnceForAnySize) {
  const DeviceMesh mesh = mesh2x3();
  const std::vector<std::vector<MeshAxis>> splits = {
      {MeshAxis::X}, {MeshAxis::Y}, {MeshAxis::Y, MeshAxis::X}, {MeshAxis::X, MeshAxis::Y}};
  for (const auto& split : splits) {
    for (int64_t n : {0, 1, 2, 3, 5, 6, 7, 12, 13}) {
      std::vector<int> covered(static_cast<size_t>(n), 0);
      for (int64_t rank : mesh.team(0, split)) {
        const Block block = blockOf(n, mesh, split, rank);
        EXPECT_LE(block.valid, block.alloc);
        EXPECT_EQ(block.alloc, blockOf(n, mesh, split, 0).alloc);
        EXPECT_EQ(allocBlock(Size(n), mesh, split), Size(block.alloc));
        for (int64_t i = 0; i < block.valid; ++i)
          ++covered.at(static_cast<size_t>(block.begin + i));
      }
      for (int count : covered) EXPECT_EQ(count, 1) << "n = " << n;
    }
  }
}

TEST(TypesAndSizes, GatheringTheInnerMeshAxisGivesTheOuterBlock) {
  const DeviceMesh mesh = mesh2x3();
  for (int64_t n : {5, 7, 10, 11}) {
    for (int64_t rank = 0; rank < 6; ++rank) {
      const Block outer = blockOf(n, mesh, {MeshAxis::Y}, rank);
      int64_t gathered = 0;
      for (int64_t peer : mesh.team(rank, {MeshAxis::X})) {
        gathered += blockOf(n, mesh, {MeshAxis::Y, MeshAxis::X}, peer).valid;
      }
      EXPECT_EQ(gathered, outer.valid) << "n = " << n << ", rank " << rank;
    }
  }
}

TEST(TypesAndSizes, TensorDescriptionsGiveStridesAndBytes) {
  EXPECT_EQ(stridesFor({2, 3, 4}, {0, 2, 1}), (std::vector<int64_t>{12, 1, 3}));
  TensorDesc desc = denseDesc(DType::F32, {2, 3});
  EXPECT_TRUE(desc.isContiguous());
  EXPECT_EQ(desc.allocBytes(), 24);
  desc.alloc = {2, 4};
  desc.strides = {4, 1};
  EXPECT_FALSE(desc.isContiguous());
  EXPECT_EQ(denseDesc(DType::F32, {0, 3}).allocBytes(), 0);
  EXPECT_EQ(denseDesc(DType::F64, {}).allocBytes(), 8);
}

}  // namespace
}  // namespace heddle::types_and_sizes_test
