#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "ir/base/error.h"
#include "tests/host/device/library_cases.h"
#include "tests/sanitized.h"

namespace heddle::host::cpu_library_cpu_test {
namespace {

void runOn(Device& device, LibraryRun& run) {
  ErrorSink errors;
  LibraryCall call = run.call();
  // The workspace is filled with garbage, because no result may depend on its content.
  std::vector<std::byte> workspace(static_cast<size_t>(device.libraryWorkspace(call)),
                                   std::byte{0xFF});
  call.workspace = workspace.data();
  Stream stream = device.createStream();
  device.library(call, stream, {&errors, 0});
  device.destroyStream(stream);
  errors.rethrow();
}

class CpuLibrary : public ::testing::TestWithParam<DType> {};

TEST_P(CpuLibrary, EveryCaseMatchesTheDefinition) {
  // With a sanitizer, only one dtype runs the largest tensors, which take most of the time.
  const int64_t large =
      GetParam() == DType::F32 ? INT64_MAX : heddle::testing::casesOf<int64_t>(INT64_MAX, 100'000);
  for (int threads : {1, 3}) {
    CpuOptions options;
    options.threads = threads;
    auto device = makeCpuDevice(options);
    checkEveryLibraryCase(
        GetParam(), [&](LibraryRun& run) { runOn(*device, run); }, large);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, CpuLibrary, ::testing::ValuesIn(kAllDTypes),
                         [](const auto& info) { return std::string(name(info.param)); });

// Adds many small numbers to 1. Each of them is a quarter of the last place of 1, so the sum would
// stay 1 if each step were rounded.
TEST(CpuLibraryRounding, SumsAreRoundedOnce) {
  auto device = makeCpuDevice();
  const std::pair<DType, int> types[] = {{DType::BF16, 9}, {DType::F16, 12}};
  for (const auto& [dtype, bits] : types) {
    const int64_t n = 1 + (int64_t{1} << (bits - 1));
    LibraryRun cumsum{LibraryFunction::Cumsum, 0, false, {{dtype, {n}, {}}}, {dtype, {n}, {}}};
    LibraryRun add{LibraryFunction::ScatterAdd,
                   0,
                   false,
                   {{dtype, {1}, {}}, {DType::I64, {n}, {}}, {dtype, {n}, {}}},
                   {dtype, {1}, {}}};
    storeElement(add.in[0].bytes.data(), dtype, 0, 0.0);
    for (int64_t i = 0; i < n; ++i) {
      const Scalar value = i == 0 ? 1.0 : std::ldexp(1.0, -bits);
      storeElement(cumsum.in[0].bytes.data(), dtype, i, value);
      storeElement(add.in[2].bytes.data(), dtype, i, value);
      storeElement(add.in[1].bytes.data(), DType::I64, i, int64_t{0});
    }
    runOn(*device, cumsum);
    runOn(*device, add);
    EXPECT_EQ(cumsum.out.at({n - 1}), 1.5) << name(dtype);
    EXPECT_EQ(add.out.at({0}), 1.5) << name(dtype);
  }
}

TEST(CpuLibraryRounding, IntegersWrap) {
  auto device = makeCpuDevice();
  LibraryRun run{LibraryFunction::Cumsum, 0, false, {{DType::I64, {2}, {}}}, {DType::I64, {2}, {}}};
  storeElement(run.in[0].bytes.data(), DType::I64, 0, INT64_MAX);
  storeElement(run.in[0].bytes.data(), DType::I64, 1, int64_t{1});
  runOn(*device, run);
  EXPECT_EQ(toInt(scalarAt(run.out, {1})), INT64_MIN);
}

TEST(CpuLibraryErrors, Float8SumsAndOrdersAreRefused) {
  auto device = makeCpuDevice();
  expectFloat8Refused([&](const LibraryCall& call) { return device->libraryWorkspace(call); });
}

TEST(CpuLibraryErrors, TooManyAxesAreRefused) {
  std::vector<int64_t> sizes(12, 2);
  std::vector<int64_t> strides;
  for (int i = 0; i < 12; ++i) strides.push_back(int64_t{3} << (2 * i));
  LibraryRun run{
      LibraryFunction::Argsort, 0, false, {{DType::Bool, sizes, strides}}, {DType::I64, sizes, {}}};
  auto device = makeCpuDevice();
  EXPECT_THROW(device->libraryWorkspace(run.call()), UserError);
}

}  // namespace
}  // namespace heddle::host::cpu_library_cpu_test
