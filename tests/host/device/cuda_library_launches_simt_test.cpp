// Runs the CUDA kernels of the library functions, and the code that launches them, on the host.
#include <gtest/gtest.h>

#include "host/device/cuda_library_launches.h"
#include "tests/host/device/library_cases.h"
#include "tests/host/device/simt_blocks.h"
//
#include "codegen/runtime/cuda_elements.h"
//
#include "codegen/runtime/cuda_lines.h"
//
#include "codegen/runtime/cuda_keys.h"
//
#include "codegen/runtime/cuda_sort.h"
//
#include "codegen/runtime/cuda_select.h"
//
#include "codegen/runtime/cuda_library.h"

namespace heddle::host::cuda_library_launches_simt_test {
namespace {

static_assert(sizeof(LibraryArgs) == sizeof(hdl::Args));
static_assert(offsetof(LibraryArgs, lanes) == offsetof(hdl::Args, lanes));
static_assert(offsetof(LibraryArgs, starts) == offsetof(hdl::Args, starts));
static_assert(offsetof(LibraryArgs, first_line) == offsetof(hdl::Args, first_line));
static_assert(offsetof(LibraryArgs, extent) == offsetof(hdl::Args, extent));
static_assert(offsetof(LibraryArgs, bits) == offsetof(hdl::Args, bits));
static_assert(offsetof(LibraryArgs, to_keys) == offsetof(hdl::Args, to_keys));
static_assert(offsetof(LibraryArgs, flip) == offsetof(hdl::Args, flip));
static_assert(offsetof(LibraryArgs, index_type) == offsetof(hdl::Args, index_type));
static_assert(kLibraryThreads == hdl::kThreads);
static_assert(static_cast<int>(DType::Bool) == hdl::kBool &&
              static_cast<int>(DType::U8) == hdl::kU8);
static_assert(static_cast<int>(DType::I8) == hdl::kI8 && static_cast<int>(DType::I32) == hdl::kI32);
static_assert(static_cast<int>(DType::I64) == hdl::kI64);
static_assert(static_cast<int>(DType::F8E4M3) == hdl::kF8E4M3);
static_assert(static_cast<int>(DType::F8E5M2) == hdl::kF8E5M2);
static_assert(static_cast<int>(DType::F16) == hdl::kF16);
static_assert(static_cast<int>(DType::BF16) == hdl::kBF16);
static_assert(static_cast<int>(DType::F32) == hdl::kF32 &&
              static_cast<int>(DType::F64) == hdl::kF64);

using Entry = void (*)(hdl::Args);
constexpr Entry kEntries[] = {
    hdlScan,       hdlTotals,     hdlScanColumns, hdlKeys32,   hdlKeys64,   hdlSortWarp32,
    hdlSortWarp64, hdlSortTile32, hdlSortTile64,  hdlSelect32, hdlSelect64, hdlCount32,
    hdlCount64,    hdlMove32,     hdlMove64,      hdlStarts,   hdlCombine,  hdlIndices};
static_assert(std::size(kEntries) == std::size(kLibraryEntries));

class HostLauncher : public LibraryLauncher {
 public:
  explicit HostLauncher(uint64_t seed) : seed_(seed) {}
  void launch(LibraryKernel kernel, int64_t blocks, const LibraryArgs& args) override {
    ASSERT_GT(blocks, 0);
    hdl::Args copy;
    std::memcpy(&copy, &args, sizeof(copy));
    const Entry entry = kEntries[static_cast<size_t>(kernel)];
    // Each block loops over the remaining work, so fewer blocks must give the same result.
    simt::grid().run(seed_ % 2 == 0 ? blocks : std::min<int64_t>(blocks, 3), kLibraryThreads, seed_,
                     [&] { entry(copy); });
  }

 private:
  uint64_t seed_;
};

void runSteps(LibraryRun& run, uint64_t seed) {
  LibraryCall call = run.call();
  const auto bytes = static_cast<size_t>(libraryStepsWorkspace(call));
  // Detects writes beyond the workspace.
  std::vector<std::byte> workspace(bytes + 4096, std::byte{0xFF});
  call.workspace = workspace.data();
  HostLauncher launcher(seed);
  librarySteps(call, launcher);
  for (size_t i = bytes; i < workspace.size(); ++i) ASSERT_EQ(workspace[i], std::byte{0xFF});
}

class CudaLibraryLaunchesSimt : public ::testing::TestWithParam<DType> {};

// Leaves out cumsum and argsort of the largest tensors, which would take minutes.
TEST_P(CudaLibraryLaunchesSimt, EveryCaseMatchesTheDefinition) {
  const auto seed = static_cast<uint64_t>(GetParam());
  checkEveryLibraryCase(
      GetParam(), [&](LibraryRun& run) { runSteps(run, seed); }, 4200);
}

// I64 and BF16 cover both kinds of sums, and keys of 64 and of 32 bits.
INSTANTIATE_TEST_SUITE_P(DTypes, CudaLibraryLaunchesSimt,
                         ::testing::Values(DType::I64, DType::BF16),
                         [](const auto& info) { return std::string(name(info.param)); });

// The other dtypes differ only in loads, stores and sort keys.
TEST(CudaLibraryLaunchesSimtCases, SmallCasesOfEveryDtypeAreRight) {
  std::mt19937 random(3);
  for (DType dtype : kAllDTypes) {
    const RunLibrary device = [&](LibraryRun& run) { runSteps(run, 2); };
    if (takesSums(dtype)) checkLineCase(dtype, {{2, 33}, 1, {}, {1, 2}}, random, device);
    for (bool narrow : {false, true}) {
      checkScatterCase(dtype, {{5, 3}, {9, 1}, {9, 3}, 0, {}, {}}, narrow, random, device);
    }
  }
  expectFloat8Refused(libraryStepsWorkspace);
}

TEST(CudaLibraryLaunchesSimtCases, ScanOfALongLineIsRight) {
  std::mt19937 random(1);
  LibraryRun run{
      LibraryFunction::Cumsum, 0, false, {{DType::F32, {20000}, {}}}, {DType::F32, {20000}, {}}};
  checkCumsum(run, random, [](LibraryRun& made) { runSteps(made, 1); });
}

// Covers argsorts that return only the first k elements of a long line. Some lines need several
// selection steps. Elements that are equal must be in the order of their indices.
TEST(CudaLibraryLaunchesSimtCases, TopOfLongLinesIsRight) {
  std::mt19937 random(2);
  const auto top = [&](DType dtype, int64_t n, int64_t k, bool descending) {
    SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(k) + " of " + std::to_string(n));
    LibraryRun run{
        LibraryFunction::Argsort, 0, descending, {{dtype, {n}, {}}}, {DType::I64, {k}, {}}};
    checkArgsort(run, random, [](LibraryRun& made) { runSteps(made, 1); });
  };
  top(DType::F32, 9000, 50, true);
  top(DType::BF16, 8193, 3, false);
  top(DType::Bool, 4097, 300, true);
  top(DType::I64, 20000, 1000, false);
}

}  // namespace
}  // namespace heddle::host::cuda_library_launches_simt_test
