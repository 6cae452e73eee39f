// Provokes errors of each kind, and checks their codes (ir/base/error.h).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_cache.h"
#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::error_codes_cpu_test {
namespace {

// Returns the name of the code of the error that `work` throws.
std::string codeOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return nameOf(error.code());
  }
  return "no error";
}

Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\nfusion f" + text); }

const char* const kAdd = "(%x: f32[n], %y: f32[n]) {\n  %z = add(%x, %y)\n  return %z\n}\n";

struct ErrorCodes : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor{fusionOf(kAdd), {device.get()}};

  Tensor zeros(std::vector<int64_t> sizes, DType dtype = DType::F32) const {
    return toDevice(*device, device->allocator(), HostTensor(dtype, sizes),
                    denseDesc(dtype, sizes));
  }
};

TEST_F(ErrorCodes, WrongTextsHaveTheCodesOfTheirFaults) {
  EXPECT_EQ(codeOf([] { fusionOf("(%x: f32[n]) {"); }), "parse error");
  EXPECT_EQ(codeOf([] { testing::programOf("program p("); }), "parse error");
  EXPECT_EQ(codeOf([] {
              fusionOf("(%a: f32[2, 3], %b: f32[4, 5]) {\n  %c = matmul(%a, %b)\n  return %c\n}\n");
            }),
            "shape mismatch");
  EXPECT_EQ(codeOf([] {
              fusionOf("(%a: f32[2, 3], %b: f64[3, 5]) {\n  %c = matmul(%a, %b)\n  return %c\n}\n");
            }),
            "wrong type");
}

TEST_F(ErrorCodes, WrongArgumentsHaveTheCodesOfTheirFaults) {
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2}), zeros({3})}); }), "shape mismatch");
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2}), zeros({2, 2})}); }), "shape mismatch");
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2}), zeros({2}, DType::I32)}); }), "wrong type");
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2}), Scalar(1.0)}); }), "wrong type");
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2})}); }), "invalid argument");
}

TEST_F(ErrorCodes, ExhaustedMemoryGivesOutOfMemory) {
  testing::FailingAllocator allocator(device->allocator());
  RunOptions options;
  options.allocator = &allocator;
  allocator.failAt(0);
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2}), zeros({2})}, options); }), "out of memory");
  EXPECT_EQ(codeOf([&] { executor.run({zeros({2}), zeros({2})}, options).wait(); }), "no error");
  allocator.failAt(0);
  EXPECT_EQ(codeOf([&] {
              toDevice(*device, allocator, HostTensor(DType::F32, {2}), denseDesc(DType::F32, {2}));
            }),
            "out of memory");
}

TEST_F(ErrorCodes, LostDeviceGivesDeviceLost) {
  testing::FaultyDevice lost;
  Executable executable(testing::programOf("program p(%x: f32[n]) -> (%y) with n = 2 {\n"
                                           "  slot %y: f32[n]\n  %y = allocate stream=0\n"
                                           "  copy %x -> %y stream=0\n}\n"),
                        {&lost});
  const Tensor x = testing::deviceFloats(lost, {1, 2}, {2});
  executable.run({x}).wait();
  lost.loseAt(0);
  EXPECT_EQ(codeOf([&] { executable.run({x}).wait(); }), "device lost");
  lost.repair();
}

TEST_F(ErrorCodes, MissingGpuGivesUnsupported) {
  std::string why;
  if (cudaDeviceCount(why) > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(codeOf([] { makeCudaDevice(0); }), "unsupported");
}

// The compiler rejects the text of every kernel.
TEST_F(ErrorCodes, RejectedKernelGivesCompileFailure) {
  class Compiler : public codegen::KernelCompiler {
   public:
    explicit Compiler(const codegen::KernelCompiler& inner) : inner_(inner) {}
    codegen::Target target() const override { return inner_.target(); }
    std::string identity() const override { return inner_.identity(); }
    std::vector<std::byte> compile(const codegen::KernelSource& source) const override {
      codegen::KernelSource wrong = source;
      wrong.text += "\nthis is no C++\n";
      return inner_.compile(wrong);
    }

   private:
    const codegen::KernelCompiler& inner_;
  };
  class RejectingDevice : public testing::FaultyDevice {
   public:
    const codegen::KernelCompiler* compiler() const override { return rejecting.get(); }
    std::unique_ptr<Compiler> rejecting;
  };
  if (device->compiler() == nullptr) GTEST_SKIP() << "no compiler";
  RejectingDevice rejecting;
  rejecting.rejecting = std::make_unique<Compiler>(*device->compiler());
  codegen::TempFolder folder;
  codegen::ImageCache images(folder.path());
  FusionExecutor refused(fusionOf(kAdd), {&rejecting, nullptr, &images});
  EXPECT_EQ(codeOf([&] { refused.run({zeros({2}), zeros({2})}); }), "compile failure");
}

const char* const kSum = R"(
program p(%x: f32[n]) -> (%y) with n = 2 {
  slot %y: f32[n]
  %y = allocate stream=0
  $t = communicate allreduce %x -> %y op=sum stream=0
  wait $t stream=0
}
)";

// Rank 1 fails or does nothing, while rank 0 waits for it.
std::string codeOfWaitingRank(const std::function<void(comm::World&)>& rank1) {
  std::string code;
  comm::JobMonitorOptions options;
  options.deadline = 5;
  options.patience = 0.5;
  testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(testing::programOf(kSum), {device.get(), &world, nullptr, options});
    if (world.rank() == 1) return rank1(world);
    const Tensor x = testing::deviceFloats(*device, {1, 2}, {2});
    code = codeOf([&] { executable.run({x}).wait(); });
    world.fail("rank 0 ends the test");
  });
  return code;
}

TEST_F(ErrorCodes, LostRankGivesRankLost) {
  EXPECT_EQ(codeOfWaitingRank([](comm::World& world) { world.fail("a reason"); }), "rank lost");
}

TEST_F(ErrorCodes, JobWithoutProgressGivesDeadlock) {
  EXPECT_EQ(codeOfWaitingRank([](comm::World& world) { world.barrier(); }), "deadlock");
}

}  // namespace
}  // namespace heddle::host::error_codes_cpu_test
