// Checks what a run on a GPU reports when the GPU fails.
#include <gtest/gtest.h>

#include <cstdlib>

#include "host/compile.h"
#include "tests/host/executable_common.h"

namespace heddle::host::device_faults_gpu_test {
namespace {

using testing::userErrorOf;

Program negProgram() {
  FusionBuilder b("faults");
  const ValueId x = b.input("x", DType::F32, {1024});
  b.output(
      b.pointwise("neg", {b.apply("cumsum", {b.pointwise("exp", {x})}, {{"axis", int64_t{0}}})}));
  return compile(std::move(b).build(), 1);
}

class DeviceFaultsGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
    device_ = makeCudaDevice(0);
  }
  std::unique_ptr<Device> device_;
};

// Each allocation of a run fails in turn. The next run is right.
TEST_F(DeviceFaultsGpu, FailedAllocationsLeaveTheDeviceUsable) {
  Executable executable(negProgram(), {device_.get(), nullptr, nullptr});
  testing::FailingAllocator allocator(device_->allocator());
  RunOptions options;
  options.allocator = &allocator;
  const std::vector<Argument> inputs = {
      testing::deviceFloats(*device_, std::vector<float>(1024, 0.0F), {1024})};
  int64_t call = 0;
  for (std::string error = "first"; !error.empty(); ++call) {
    allocator.failAt(call);
    error = userErrorOf([&] { executable.run(inputs, options).wait(); });
    EXPECT_TRUE(error.empty() || error.find("out of memory") != std::string::npos) << error;
    allocator.failAt(-1);
    Outputs outputs = executable.run(inputs, options);
    outputs.wait();
    EXPECT_EQ(testing::floatsOf(*device_, outputs[0])[9], -10.0F);
  }
  EXPECT_GT(call, 1);
}

// The input is at an address that the GPU cannot read. CUDA then refuses every later call, so the
// test runs in a child process. Neither run may wait for ever or end the process.
TEST_F(DeviceFaultsGpu, FaultInAKernelIsReportedAndTheGpuIsLost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [&] {
    int code = 0;
    {
      Executable executable(negProgram(), {device_.get(), nullptr, nullptr});
      const std::vector<Argument> bad = {
          Tensor{reinterpret_cast<void*>(256), denseDesc(DType::F32, {1024}), nullptr}};
      for (int run = 0; run < 2; ++run) {
        const std::string error = userErrorOf([&] { executable.run(bad).wait(); });
        if (error.find("the GPU is lost for this process") == std::string::npos) code = 1 + run;
      }
    }
    device_.reset();
    std::_Exit(code);
  };
  EXPECT_EXIT(fault(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::host::device_faults_gpu_test
