#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "ir/base/error.h"
#include "tests/host/device/matmul_cases.h"

namespace heddle::host::device_matmul_cpu_test {
namespace {

void multiplyAndCheck(Matrix& a, Matrix& b, Matrix& c) {
  std::mt19937 random(11);
  fillRandom(a, random);
  fillRandom(b, random);
  CpuOptions options;
  options.threads = 2;
  auto device = makeCpuDevice(options);
  Stream stream = device->createStream();
  runMatmul(*device, specOf(a, b, c),
            {a.bytes.data(), b.bytes.data(), nullptr, c.bytes.data(), nullptr}, stream);
  device->destroyStream(stream);
  checkMatmul(a, b, c);
}

class CpuMatmul : public ::testing::TestWithParam<DType> {};

TEST_P(CpuMatmul, EveryCaseMatchesLoops) {
  for (const MatmulCase& sizes : matmulCases()) {
    SCOPED_TRACE(sizes.what);
    Matrix a(GetParam(), sizes.a, sizes.a_strides);
    Matrix b(GetParam(), sizes.b, sizes.b_strides);
    Matrix c(GetParam(), sizes.c, sizes.c_strides);
    multiplyAndCheck(a, b, c);
  }
}

// The device computes converted operands in blocks of 2048 and integers in blocks of 512.
TEST_P(CpuMatmul, SizesAboveABlockMatchLoops) {
  for (const std::array<int64_t, 3>& sizes :
       {std::array<int64_t, 3>{4100, 3, 2}, {2, 4100, 3}, {3, 2, 4100}}) {
    const auto [m, k, n] = sizes;
    SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << n);
    Matrix a(GetParam(), {m, k}, {});
    Matrix b(GetParam(), {2, k, n}, {});
    Matrix c(GetParam(), {2, m, n}, {});
    multiplyAndCheck(a, b, c);
    Matrix a_columns(GetParam(), {m, k}, {2, 2 * m});
    Matrix c_columns(GetParam(), {2, m, n}, {2 * m * n, 1, m});
    multiplyAndCheck(a_columns, b, c_columns);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, CpuMatmul,
                         ::testing::Values(DType::Bool, DType::I32, DType::I64, DType::BF16,
                                           DType::F16, DType::F32, DType::F64),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(CpuMatmulErrors, MismatchedSizesAndDtypesAreRefused) {
  auto device = makeCpuDevice();
  const TensorDesc a = denseDesc(DType::F32, {2, 3});
  const TensorDesc b = denseDesc(DType::F32, {4, 2});
  const TensorDesc c = denseDesc(DType::F32, {2, 2});
  const TensorDesc wide = denseDesc(DType::F64, {3, 2});
  MatmulSpec spec;
  spec.a = a;
  spec.b = b;
  spec.c = c;
  EXPECT_THROW(device->prepareMatmul(spec, {}), UserError);
  spec.b = wide;
  EXPECT_THROW(device->prepareMatmul(spec, {}), UserError);
}

// In f32, 1 + 256 * 2^-9 is 1.5. If each step were rounded to bf16, the sum would stay 1.
TEST(CpuMatmulRounding, Bf16IsRoundedOnce) {
  Matrix a(DType::BF16, {1, 257}, {}), b(DType::BF16, {257, 1}, {}), c(DType::BF16, {1, 1}, {});
  for (int64_t p = 0; p < 257; ++p) {
    storeElement(a.bytes.data(), DType::BF16, p, 1.0);
    storeElement(b.bytes.data(), DType::BF16, p, p == 0 ? 1.0 : std::ldexp(1.0, -9));
  }
  auto device = makeCpuDevice();
  Stream stream = device->createStream();
  runMatmul(*device, specOf(a, b, c),
            {a.bytes.data(), b.bytes.data(), nullptr, c.bytes.data(), nullptr}, stream);
  device->destroyStream(stream);
  EXPECT_EQ(c.at({0, 0}), 1.5);
}

}  // namespace
}  // namespace heddle::host::device_matmul_cpu_test
