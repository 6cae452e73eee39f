// Tests the CUDA kernels for matrix products that cuBLASLt does not compute. Runs them on the host,
// and compiles them with NVRTC.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>

#include "codegen/compile/runtime_text.h"
#include "host/device/fallback_matmul.h"
#include "tests/codegen/simt/nvrtc.h"
#include "tests/host/device/matmul_cases.h"
#include "tests/host/device/simt_blocks.h"
//
#include "codegen/runtime/cuda_elements.h"
//
#include "codegen/runtime/cuda_product.h"

namespace heddle::host::fallback_matmul_simt_test {
namespace {

static_assert(sizeof(ProductArgs) == sizeof(hdp::Args));
static_assert(offsetof(ProductArgs, strides) == offsetof(hdp::Args, strides));
static_assert(offsetof(ProductArgs, column_strides) == offsetof(hdp::Args, column_strides));
static_assert(offsetof(ProductArgs, types) == offsetof(hdp::Args, types));
static_assert(kProductThreads == hdp::kThreads);
static_assert(static_cast<int>(Activation::Relu) == 1 &&
              static_cast<int>(Activation::GeluTanh) == 2);

using Entry = void (*)(hdp::Args);
constexpr Entry kEntries[] = {hdpIntegers, hdpSingles, hdpDoubles, hdpFinishSingles,
                              hdpFinishDoubles};
static_assert(std::size(kEntries) == std::size(kProductEntries));

// Launches at most `blocks` blocks. Each block loops over the remaining work.
void launch(const ProductLaunch& product, const Matrix* a, const Matrix* b, const Matrix* bias,
            Matrix& c, int64_t blocks) {
  ProductArgs args = product.args;
  args.a = a == nullptr ? nullptr : a->bytes.data();
  args.b = b == nullptr ? nullptr : b->bytes.data();
  args.bias = bias == nullptr ? nullptr : bias->bytes.data();
  args.c = c.bytes.data();
  hdp::Args copy;
  std::memcpy(&copy, &args, sizeof(copy));
  simt::grid().run(std::min(product.blocks, blocks), kProductThreads, 3,
                   [&] { kEntries[static_cast<size_t>(product.kernel)](copy); });
}

class FallbackMatmulSimt : public ::testing::TestWithParam<DType> {};

TEST_P(FallbackMatmulSimt, EveryCaseMatchesLoops) {
  std::mt19937 random(5);
  for (const MatmulCase& sizes : matmulCases()) {
    SCOPED_TRACE(sizes.what);
    Matrix a(GetParam(), sizes.a, sizes.a_strides);
    Matrix b(GetParam(), sizes.b, sizes.b_strides);
    Matrix c(GetParam(), sizes.c, sizes.c_strides);
    if (c.desc.numel() == 0) continue;
    fillRandom(a, random);
    fillRandom(b, random);
    launch(fallbackMatmul(specOf(a, b, c)), &a, &b, nullptr, c, 3);
    checkMatmul(a, b, c);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, FallbackMatmulSimt,
                         ::testing::Values(DType::Bool, DType::I8, DType::I64, DType::F16,
                                           DType::F64),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(FallbackMatmulSimtFloat8, MixedFloat8OperandsMatchLoops) {
  std::mt19937 random(6);
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const MatmulCase& sizes : matmulCases()) {
      SCOPED_TRACE(sizes.what);
      Matrix a(DType::F8E4M3, sizes.a, sizes.a_strides), b(DType::F8E5M2, sizes.b, sizes.b_strides);
      Matrix c(dtype, sizes.c, sizes.c_strides);
      if (c.desc.numel() == 0) continue;
      fillRandom(a, random);
      fillRandom(b, random);
      launch(fallbackMatmul(specOf(a, b, c)), &a, &b, nullptr, c, 3);
      checkMatmul(a, b, c);
    }
  }
}

TEST(FallbackMatmulSimtFloat8, LibraryComputesTheSupportedPart) {
  const auto part = [](DType left, DType right, DType result, int64_t n, int64_t k,
                       bool has = true) {
    MatmulSpec spec;
    spec.a = denseDesc(left, {5, k});
    spec.b = denseDesc(right, {k, n});
    spec.c = denseDesc(result, {5, n});
    spec.bias = denseDesc(result, {n});
    spec.activation = Activation::Relu;
    return libraryPart(spec, has);
  };
  constexpr DType e4 = DType::F8E4M3, e5 = DType::F8E5M2, f32 = DType::F32, bf16 = DType::BF16;
  EXPECT_TRUE(part(e4, e5, bf16, 32, 16).value().bias.has_value());
  EXPECT_FALSE(part(e5, e4, f32, 32, 16).value().bias.has_value());
  EXPECT_EQ(part(e4, e4, f32, 32, 16).value().activation, Activation::None);
  EXPECT_EQ(part(e4, e4, f32, 32, 16, false), std::nullopt);
  EXPECT_EQ(part(e5, e5, f32, 32, 16), std::nullopt);
  EXPECT_EQ(part(e4, e4, e4, 32, 16), std::nullopt);
  EXPECT_EQ(part(e4, e4, bf16, 24, 16), std::nullopt);
  EXPECT_EQ(part(e4, e4, bf16, 32, 24), std::nullopt);
  EXPECT_EQ(part(e4, e4, bf16, 32, 0), std::nullopt);
  EXPECT_NE(part(bf16, bf16, bf16, 24, 0, false), std::nullopt);
}

TEST(FallbackMatmulSimtFloat8, ElementsMatchTheReference) {
  std::vector<float> values = {0.0F,  -0.0F, 448,   464,   465,       480,        -500,
                               57344, 61440, 61439, 1e30F, HUGE_VALF, -HUGE_VALF, std::nanf("")};
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    values.push_back(std::ldexp(static_cast<float>(random() % 256) / 64 - 2,
                                static_cast<int>(random() % 40) - 24));
  }
  for (const DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
    for (int i = 0; i < 256; ++i) {
      const auto bits = static_cast<uint64_t>(i);
      const auto* byte = reinterpret_cast<const std::byte*>(&bits);
      const auto expected = static_cast<float>(toDouble(loadElement(byte, dtype, 0)));
      const float got = hdl::loadAs(float(), static_cast<int64_t>(dtype), byte, 0);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(got)) << i;
      } else {
        EXPECT_EQ(got, expected) << i;
      }
    }
    for (const float value : values) {
      uint64_t expected = 0, got = 0;
      storeElement(reinterpret_cast<std::byte*>(&expected), dtype, 0, Scalar(double{value}));
      hdl::storeAs(static_cast<int64_t>(dtype), &got, 0, value);
      EXPECT_EQ(got, expected) << value;
    }
  }
}

TEST(FallbackMatmulSimtEpilogue, IntegersWrapAfterBiasAndBeforeRelu) {
  for (const auto& [dtype, big] : {std::pair{DType::I64, int64_t{1} << 62},
                                   {DType::I32, int64_t{1} << 30},
                                   {DType::I32, -(int64_t{1} << 30)},
                                   {DType::I8, int64_t{50}},
                                   {DType::I8, int64_t{-50}},
                                   {DType::U8, int64_t{200}}}) {
    Matrix a(dtype, {1, 2}, {}), b(dtype, {2, 3}, {}), c(dtype, {1, 3}, {}), bias(dtype, {3}, {});
    const int64_t left[] = {big, 3}, right[] = {5, 1, 0, big, 0, big}, added[] = {0, 1, 7};
    for (int64_t i = 0; i < 2; ++i) storeElement(a.bytes.data(), dtype, i, Scalar(left[i]));
    for (int64_t i = 0; i < 6; ++i) storeElement(b.bytes.data(), dtype, i, Scalar(right[i]));
    for (int64_t i = 0; i < 3; ++i) storeElement(bias.bytes.data(), dtype, i, Scalar(added[i]));
    MatmulSpec spec = specOf(a, b, c);
    spec.bias = bias.desc;
    const auto big_bits = static_cast<uint64_t>(big);
    const uint64_t sums[] = {8 * big_bits, big_bits + 1, 3 * big_bits + 7};
    for (const bool relu : {false, true}) {
      spec.activation = relu ? Activation::Relu : Activation::None;
      EXPECT_EQ(libraryPart(spec, true), std::nullopt);
      launch(fallbackMatmul(spec), &a, &b, &bias, c, 1);
      for (int64_t i = 0; i < 3; ++i) {
        Matrix expected(dtype, {1}, {});
        storeElement(expected.bytes.data(), dtype, 0, Scalar(static_cast<int64_t>(sums[i])));
        const double wrapped = expected.at({0});
        EXPECT_EQ(c.at({0, i}), relu ? std::max(wrapped, 0.0) : wrapped)
            << name(dtype) << " " << i << (relu ? " relu" : "");
      }
    }
  }
}

// The columns of c are dense, as after a call of cuBLASLt. The kernel adds the bias to c, unless
// the library has already added it, and then applies gelu.
TEST(FallbackMatmulSimtEpilogue, GeluOfF64AndF32IsExact) {
  for (const DType dtype : {DType::F64, DType::F32}) {
    Matrix a(dtype, {3, 1}, {}), b(dtype, {1, 4}, {}), c(dtype, {3, 4}, {1, 3}),
        bias(dtype, {4}, {});
    MatmulSpec spec = specOf(a, b, c);
    spec.bias = bias.desc;
    spec.activation = Activation::GeluTanh;
    MatmulSpec part = libraryPart(spec, false).value();
    EXPECT_EQ(part.activation, dtype == DType::F64 ? Activation::None : Activation::GeluTanh);
    part.activation = Activation::None;
    for (const bool adds_bias : {false, true}) {
      if (adds_bias) part.bias.reset();
      for (int64_t i = 0; i < 12; ++i) {
        storeElement(c.bytes.data(), dtype, i, static_cast<double>(i - 6) / 4);
        storeElement(bias.bytes.data(), dtype, i % 4, static_cast<double>(i % 4) / 8);
      }
      launch(productFinish(spec, part), nullptr, nullptr, adds_bias ? &bias : nullptr, c, 1);
      for (int64_t row = 0; row < 3; ++row) {
        for (int64_t column = 0; column < 4; ++column) {
          const double x = static_cast<double>(column * 3 + row - 6) / 4 +
                           (adds_bias ? static_cast<double>(column) / 8 : 0);
          const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
          EXPECT_NEAR(c.at({row, column}), 0.5 * x * (1 + std::tanh(inner)),
                      dtype == DType::F64 ? 1e-15 : 5e-7);
        }
      }
    }
  }
}

TEST(FallbackMatmulSimtEpilogue, NvrtcCompilesTheSource) {
  const auto compiler = codegen::testing::nvrtc("sm_90");
  if (compiler == nullptr) GTEST_SKIP() << "libheddle_cuda.so with NVRTC is not there";
  std::string text(codegen::kRuntimeHeader_cuda_elements);
  text += codegen::kRuntimeHeader_cuda_product;
  EXPECT_FALSE(compiler->compile({codegen::Target::Cuda, text}).empty());
}

}  // namespace
}  // namespace heddle::host::fallback_matmul_simt_test
