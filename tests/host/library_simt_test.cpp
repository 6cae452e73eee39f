// The CUDA kernels of the library functions and the steps that launch them, on the host.
#include <gtest/gtest.h>

#include "host/library_steps.h"
#include "tests/host/library_cases.h"
#include "tests/host/simt_blocks.h"
//
#include "codegen/runtime/cuda_library.h"

namespace heddle::host {
namespace {

static_assert(sizeof(LibraryArgs) == sizeof(hdl::Args));
static_assert(offsetof(LibraryArgs, lanes) == offsetof(hdl::Args, lanes));
static_assert(offsetof(LibraryArgs, starts) == offsetof(hdl::Args, starts));
static_assert(offsetof(LibraryArgs, first_line) == offsetof(hdl::Args, first_line));
static_assert(offsetof(LibraryArgs, flip) == offsetof(hdl::Args, flip));
static_assert(kLibraryThreads == hdl::kThreads);

using Entry = void (*)(hdl::Args);
constexpr Entry kEntries[] = {hdlScan,        hdlTotals,      hdlScanColumns, hdlKeys32,  hdlKeys64,
                              hdlSortShort32, hdlSortShort64, hdlCount32,     hdlCount64, hdlMove32,
                              hdlMove64,      hdlStarts,      hdlCombine,     hdlPlaces};
static_assert(std::size(kEntries) == std::size(kLibraryEntries));

class HostLauncher : public LibraryLauncher {
 public:
  explicit HostLauncher(uint64_t seed) : seed_(seed) {}
  void launch(LibraryKernel kernel, int64_t blocks, const LibraryArgs& args) override {
    ASSERT_GT(blocks, 0);
    hdl::Args copy;
    std::memcpy(&copy, &args, sizeof(copy));
    const Entry entry = kEntries[static_cast<size_t>(kernel)];
    // Fewer blocks must do as well: each walks over the rest.
    simt::grid().run(seed_ % 2 == 0 ? blocks : std::min<int64_t>(blocks, 3), kLibraryThreads, seed_,
                     [&] { entry(copy); });
  }

 private:
  uint64_t seed_;
};

void runSteps(LibraryRun& run, uint64_t seed) {
  LibraryCall call = run.call();
  const auto bytes = static_cast<size_t>(libraryStepsWorkspace(call));
  // What a step writes beyond its workspace is seen.
  std::vector<std::byte> workspace(bytes + 4096, std::byte{0xFF});
  call.workspace = workspace.data();
  HostLauncher launcher(seed);
  librarySteps(call, launcher);
  for (size_t i = bytes; i < workspace.size(); ++i) ASSERT_EQ(workspace[i], std::byte{0xFF});
}

class LibrarySimt : public testing::TestWithParam<DType> {};

// Lines that are sorted by digits, but none that would take minutes.
TEST_P(LibrarySimt, EveryCase) {
  const auto seed = static_cast<uint64_t>(GetParam());
  checkEveryLibraryCase(
      GetParam(), [&](LibraryRun& run) { runSteps(run, seed); }, 4200);
}

// Two values of a sum, keys of 64 and of 32 bits.
INSTANTIATE_TEST_SUITE_P(DTypes, LibrarySimt, testing::Values(DType::I64, DType::BF16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(LibrarySimtScan, ALineInChunks) {
  std::mt19937 random(1);
  LibraryRun run{
      LibraryFunction::Cumsum, 0, false, {{DType::F32, {20000}, {}}}, {DType::F32, {20000}, {}}};
  checkCumsum(run, random, [](LibraryRun& made) { runSteps(made, 1); });
}

}  // namespace
}  // namespace heddle::host
