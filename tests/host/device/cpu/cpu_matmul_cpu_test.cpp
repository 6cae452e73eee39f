#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "host/device/cpu/cpu_device.h"
#include "host/device/cpu/matmul_library.h"
#include "host/device/device.h"
#include "ir/base/error.h"
#include "tests/host/device/matmul_cases.h"

namespace heddle::host::cpu_matmul_cpu_test {
namespace {

// The libraries that this process can use for a dtype.
std::vector<CpuMatmulLibrary> libraries(DType dtype = DType::F32) {
  std::string why;
  std::vector<CpuMatmulLibrary> found = {CpuMatmulLibrary::OpenBlas};
  if (isFloat(dtype) && matmul::findOneDnn(why) != nullptr) {
    found.push_back(CpuMatmulLibrary::OneDnn);
  }
  return found;
}

std::unique_ptr<Device> deviceWith(CpuMatmulLibrary library, int threads = 2) {
  CpuOptions options;
  options.threads = threads;
  options.matmul = library;
  return makeCpuDevice(options);
}

void multiply(Device& device, Matrix& a, Matrix& b, Matrix& c) {
  Stream stream = device.createStream();
  runMatmul(device, specOf(a, b, c),
            {a.bytes.data(), b.bytes.data(), nullptr, c.bytes.data(), nullptr}, stream);
  device.destroyStream(stream);
}

void multiplyAndCheck(Matrix& a, Matrix& b, Matrix& c) {
  std::mt19937 random(11);
  fillRandom(a, random);
  fillRandom(b, random);
  for (const CpuMatmulLibrary library : libraries(a.desc.dtype)) {
    SCOPED_TRACE(library == CpuMatmulLibrary::OneDnn ? "oneDNN" : "OpenBLAS");
    std::fill(c.bytes.begin(), c.bytes.end(), std::byte{0xFF});
    multiply(*deviceWith(library), a, b, c);
    checkMatmul(a, b, c);
  }
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

// oneDNN computes parts with at most 2^20 elements.
TEST(CpuMatmulParts, LargeResultMatchesLoops) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    SCOPED_TRACE(name(dtype));
    Matrix a(dtype, {1070, 2}, {});
    Matrix b(dtype, {2, 1060}, {1, 3});
    Matrix c(dtype, {1070, 1060}, {1100, 1});
    multiplyAndCheck(a, b, c);
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
  for (const CpuMatmulLibrary library : libraries()) {
    multiply(*deviceWith(library), a, b, c);
    EXPECT_EQ(c.at({0, 0}), 1.5);
  }
}

void fillFractions(Matrix& x, uint32_t seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < x.span(); ++i) {
    storeElement(x.bytes.data(), x.desc.dtype, i, std::ldexp(double(random() % 4096) - 2048, -11));
  }
}

// The threads take parts of the result in any order.
TEST(CpuMatmulBits, RepeatedMatmulsAreEqual) {
  for (const CpuMatmulLibrary library : libraries()) {
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
      SCOPED_TRACE(name(dtype));
      Matrix a(dtype, {3, 131, 517}, {}), b(dtype, {3, 517, 259}, {}), c(dtype, {3, 131, 259}, {});
      fillFractions(a, 1);
      fillFractions(b, 2);
      const auto device = deviceWith(library, 4);
      multiply(*device, a, b, c);
      const std::vector<std::byte> first = c.bytes;
      for (int i = 0; i < 5; ++i) {
        std::fill(c.bytes.begin(), c.bytes.end(), std::byte{0xFF});
        multiply(*device, a, b, c);
        ASSERT_EQ(c.bytes, first);
      }
    }
  }
}

// Checks every seventh element of gelu(a x b + bias), with the error bound of sums of f32 that are
// rounded once.
void checkFinished(Matrix& a, Matrix& b, const Matrix& bias, Matrix& c, CpuMatmulLibrary library) {
  const auto device = deviceWith(library, 3);
  MatmulSpec spec = specOf(a, b, c);
  spec.bias = bias.desc;
  spec.activation = Activation::GeluTanh;
  Stream stream = device->createStream();
  runMatmul(*device, spec,
            {a.bytes.data(), b.bytes.data(), bias.bytes.data(), c.bytes.data(), nullptr}, stream);
  device->destroyStream(stream);
  const double step = c.desc.dtype == DType::F32 ? 1e-5 : 1.0 / 128;
  for (int64_t i = 0; i < c.desc.sizes[0]; ++i) {
    for (int64_t j = i % 7; j < c.desc.sizes[1]; j += 7) {
      double x = bias.at({j});
      for (int64_t p = 0; p < a.desc.sizes[1]; ++p) x += a.at({i, p}) * b.at({p, j});
      const double expected =
          0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      ASSERT_NEAR(c.at({i, j}), expected, step * std::max(1.0, std::abs(expected)))
          << i << ' ' << j;
    }
  }
}

TEST(CpuMatmulFinish, BiasAndGeluAreAppliedToEveryPart) {
  for (const CpuMatmulLibrary library : libraries()) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      for (const bool columns : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name(dtype) << (columns ? ", dense columns" : ""));
        Matrix a(dtype, {300, 40}, {}), b(dtype, {40, 500}, {}), bias(dtype, {500}, {});
        Matrix c(dtype, {300, 500},
                 columns ? std::vector<int64_t>{1, 300} : std::vector<int64_t>{});
        fillFractions(a, 3);
        fillFractions(b, 4);
        fillFractions(bias, 5);
        checkFinished(a, b, bias, c, library);
      }
    }
  }
}

// Several threads run one prepared matrix product at the same time.
TEST(CpuMatmulThreads, StreamsShareAPreparedMatmul) {
  for (const CpuMatmulLibrary library : libraries()) {
    const auto device = deviceWith(library, 2);
    Matrix a(DType::BF16, {200, 150}, {}), b(DType::BF16, {150, 170}, {});
    std::mt19937 random(5);
    fillRandom(a, random);
    fillRandom(b, random);
    std::vector<Matrix> results(6, Matrix(DType::BF16, {200, 170}, {}));
    const auto prepared = device->prepareMatmul(specOf(a, b, results[0]), {});
    std::vector<std::vector<std::byte>> workspaces(
        6, std::vector<std::byte>(static_cast<size_t>(prepared->workspaceBytes()) + 64));
    std::vector<Stream> streams;
    ErrorSink errors;
    for (size_t i = 0; i < results.size(); ++i) {
      streams.push_back(device->createStream());
      auto address = reinterpret_cast<uintptr_t>(workspaces[i].data());
      address = (address + 63) / 64 * 64;
      prepared->run({a.bytes.data(), b.bytes.data(), nullptr, results[i].bytes.data(),
                     reinterpret_cast<void*>(address)},
                    streams[i], {&errors, 0});
    }
    for (Stream stream : streams) device->destroyStream(stream);
    errors.rethrow();
    checkMatmul(a, b, results[0]);
    for (const Matrix& c : results) EXPECT_EQ(c.bytes, results[0].bytes);
  }
}

TEST(CpuMatmulLibraries, DeviceNamesTheLibrary) {
  EXPECT_NE(deviceWith(CpuMatmulLibrary::OpenBlas)->description().find("OpenBLAS 0."),
            std::string::npos);
  std::string why;
  if (matmul::findOneDnn(why) == nullptr) GTEST_SKIP() << why;
  EXPECT_NE(deviceWith(CpuMatmulLibrary::OneDnn)->description().find("oneDNN "), std::string::npos);
}

TEST(CpuMatmulLibraries, UnknownLibraryInTheEnvironmentIsAnError) {
  setenv("HEDDLE_CPU_MATMUL", "mkl", 1);
  EXPECT_THROW(makeCpuDevice(), UserError);
  setenv("HEDDLE_CPU_MATMUL", "openblas", 1);
  EXPECT_NE(makeCpuDevice()->description().find("OpenBLAS"), std::string::npos);
  unsetenv("HEDDLE_CPU_MATMUL");
}

}  // namespace
}  // namespace heddle::host::cpu_matmul_cpu_test
