#include <cmath>

#include "tests/host/device/library_cases.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::cuda_library_gpu_test {
namespace {

class CudaLibraryGpu : public GpuDeviceFixture {
 protected:
  void runOn(LibraryRun& run) {
    Allocator& pool = device_->allocator();
    LibraryCall call = run.call();
    std::vector<Block> held;
    const auto hold = [&](int64_t bytes) {
      held.push_back(
          {pool.allocate(std::max<int64_t>(bytes, 1), stream_), std::max<int64_t>(bytes, 1)});
      return held.back().memory;
    };
    const auto upload = [&](const Matrix& x) {
      const auto bytes = static_cast<int64_t>(x.bytes.size());
      void* memory = hold(bytes);
      device_->copy(memory, x.bytes.data(), bytes, stream_, {});
      return memory;
    };
    for (size_t i = 0; i < run.in.size(); ++i) call.in[i] = upload(run.in[i]);
    call.out = upload(run.out);
    const int64_t workspace = device_->libraryWorkspace(call);
    call.workspace = hold(workspace);
    device_->fill(call.workspace, 0xFF, workspace, stream_, {});
    device_->library(call, stream_, {});
    device_->copy(run.out.bytes.data(), call.out, static_cast<int64_t>(run.out.bytes.size()),
                  stream_, {});
    finish(stream_);
    for (const Block& block : held) pool.deallocate(block.memory, block.bytes, stream_);
  }
};

TEST_F(CudaLibraryGpu, EveryCaseMatchesTheDefinition) {
  for (DType dtype : kAllDTypes) {
    checkEveryLibraryCase(dtype, [&](LibraryRun& run) { runOn(run); });
  }
  expectFloat8Refused([&](const LibraryCall& call) { return device_->libraryWorkspace(call); });
}

// One block of threads cannot process this line.
TEST_F(CudaLibraryGpu, LineOfAMillionElementsIsRight) {
  constexpr int64_t kLine = (int64_t{1} << 20) + 3;
  std::mt19937 random(7);
  const RunLibrary run = [&](LibraryRun& made) { runOn(made); };
  for (DType dtype : {DType::F32, DType::I64, DType::BF16, DType::F16, DType::I32}) {
    SCOPED_TRACE(name(dtype));
    const DType sum = isFloat(dtype) ? dtype : DType::I64;
    LibraryRun cumsum{
        LibraryFunction::Cumsum, 0, false, {{dtype, {kLine}, {}}}, {sum, {kLine}, {}}};
    checkCumsum(cumsum, random, run);
    LibraryRun sort{
        LibraryFunction::Argsort, 0, true, {{dtype, {kLine}, {}}}, {DType::I64, {kLine}, {}}};
    checkArgsort(sort, random, run);
    sort.out = {
        DType::I64, {1000}, {}};  // candidates are reduced in steps until they fit one block
    checkArgsort(sort, random, run);
    for (int64_t targets : {1, 1000, 300000}) {
      LibraryRun add{LibraryFunction::ScatterAdd,
                     0,
                     false,
                     {{dtype, {targets}, {}}, {DType::I64, {kLine}, {}}, {dtype, {kLine}, {}}},
                     {dtype, {targets}, {}}};
      checkScatter(add, random, run);
    }
  }
}

// There are more lines than the library sorts together in one group.
TEST_F(CudaLibraryGpu, LinesBeyondOneGroupAreSorted) {
  std::mt19937 random(9);
  LibraryRun sort{LibraryFunction::Argsort,
                  1,
                  false,
                  {{DType::Bool, {9000, 4000}, {}}},
                  {DType::I64, {9000, 4000}, {}}};
  checkArgsort(sort, random, [&](LibraryRun& made) { runOn(made); });
}

// The result has the same bits in every run, although blocks run in any order.
TEST_F(CudaLibraryGpu, SumsAreDeterministic) {
  std::mt19937 random(3);
  constexpr int64_t kSources = 100000;
  LibraryRun add{
      LibraryFunction::ScatterAdd,
      0,
      false,
      {{DType::F32, {50, 4}, {}}, {DType::I64, {kSources, 1}, {}}, {DType::F32, {kSources, 4}, {}}},
      {DType::F32, {50, 4}, {}}};
  std::fill(add.in[0].bytes.begin(), add.in[0].bytes.end(), std::byte{0});
  for (int64_t i = 0; i < kSources; ++i) {
    storeElement(add.in[1].bytes.data(), DType::I64, i, static_cast<int64_t>(random() % 50));
    for (int64_t k = 0; k < 4; ++k) {
      storeElement(add.in[2].bytes.data(), DType::F32, 4 * i + k,
                   std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 64)));
    }
  }
  runOn(add);
  const std::vector<std::byte> first = add.out.bytes;
  for (int i = 0; i < 5; ++i) {
    runOn(add);
    EXPECT_EQ(add.out.bytes, first);
  }
}

}  // namespace
}  // namespace heddle::host::cuda_library_gpu_test
