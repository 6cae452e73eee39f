// Checks what a run reports when a call of its device fails, and that the process stays usable.
#include <gtest/gtest.h>

#include <optional>

#include "codegen/compile/child_process.h"
#include "host/compile.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::device_faults_cpu_test {
namespace {

using testing::FaultyDevice;
using testing::userErrorOf;

// Far above the number of device calls of the program.
constexpr int64_t kMostCalls = 500;

// Two matrix products with a kernel after each, so that there are library calls and temporaries.
Program programWithEveryStep() {
  FusionBuilder b("steps");
  const ValueId x = b.input("x", DType::F32, {4, 8});
  const ValueId w = b.input("w", DType::F32, {8, 8});
  const ValueId product = b.apply("matmul", {x, w});
  const ValueId relu = b.pointwise("relu", {product});
  const ValueId again = b.apply("matmul", {relu, w});
  b.output(b.pointwise("neg", {again}));
  return compile(std::move(b).build(), 1);
}

class DeviceFaults : public ::testing::Test {
 protected:
  std::vector<Argument> inputs() {
    std::vector<Argument> arguments;
    arguments.emplace_back(testing::deviceFloats(*device_, testing::ramp(32, -3, 0.25F), {4, 8}));
    arguments.emplace_back(testing::deviceFloats(*device_, testing::ramp(64, -2, 0.125F), {8, 8}));
    return arguments;
  }
  std::vector<float> runOnce(Executable& executable, const std::vector<Argument>& arguments) {
    Outputs outputs = executable.run(arguments);
    outputs.wait();
    return testing::floatsOf(*device_, outputs[0]);
  }
  Context context() { return {device_.get(), nullptr, &images_}; }

  codegen::TempFolder folder_;
  codegen::ImageCache images_{folder_.path()};
  std::unique_ptr<FaultyDevice> device_ = std::make_unique<FaultyDevice>();
  Program program_ = programWithEveryStep();
};

TEST_F(DeviceFaults, TensorOfAnotherDeviceIsAnError) {
  const std::vector<Argument> arguments = inputs();
  Executable executable(program_, context());
  const Tensor other = testing::deviceFloats(*device_, testing::ramp(32, 0, 1), {4, 8});
  device_->giveAway(other.data);
  const auto errorOf = [&](const std::vector<Argument>& given, std::vector<Tensor> outputs) {
    RunOptions options;
    options.preallocated = std::move(outputs);
    return userErrorOf([&] { executable.run(given, options).wait(); });
  };
  const std::string both =
      " is in the memory of cpu:1, but the run is on " + device_->description();
  EXPECT_EQ(errorOf({other, arguments[1]}, {}), "input 0 (%x)" + both);
  const std::string output = program_.slots[program_.outputs[0]].name;
  EXPECT_EQ(errorOf(arguments, {other}), "preallocated output 0 (%" + output + ")" + both);
  EXPECT_EQ(errorOf(arguments, {}), "");
}

TEST_F(DeviceFaults, RepeatedRunDoesNotAskForTheOwnersOfTensors) {
  const std::vector<Argument> arguments = inputs(), others = inputs();
  Executable executable(program_, context());
  for (int run = 0; run < 2; ++run) {
    executable.run(arguments).wait();
    executable.run(others).wait();
  }
  const int64_t before = device_->ownerQuestions();
  for (int run = 0; run < 10; ++run) {
    executable.run(arguments).wait();
    executable.run(others).wait();
  }
  EXPECT_GT(before, 0);
  EXPECT_EQ(device_->ownerQuestions(), before);
}

// Each device call fails in turn, including calls of the Executable's constructor. Then the device
// works again, and the next run must be right. It uses the same Executable if the constructor
// succeeded.
TEST_F(DeviceFaults, EachFailedCallIsReportedAndTheNextRunIsRight) {
  const std::vector<Argument> arguments = inputs();
  Executable unharmed(program_, context());
  const std::vector<float> expected = runOnce(unharmed, arguments);
  int64_t call = 0;
  for (; call < kMostCalls; ++call) {
    std::optional<Executable> executable;
    device_->failAt(call);
    const std::string error = userErrorOf([&] {
      executable.emplace(program_, context());
      runOnce(*executable, arguments);
    });
    const bool failed = device_->hasFailed();
    device_->repair();
    EXPECT_EQ(error.empty(), !failed) << "call " << call << ": " << error;
    if (failed && error.find("out of memory") == std::string::npos) {
      EXPECT_NE(error.find(FaultyDevice::kLost), std::string::npos) << error;
    }
    if (!executable) executable.emplace(program_, context());
    EXPECT_EQ(runOnce(*executable, arguments), expected) << "after call " << call;
    if (!failed) break;
  }
  EXPECT_GT(call, 10);
  EXPECT_LT(call, kMostCalls);
}

// From one call on, all device calls fail, as on a GPU after a fault in a kernel. Each run must
// report this, and must neither wait nor end the process.
TEST_F(DeviceFaults, LostDeviceIsReportedByEachRun) {
  const std::vector<Argument> arguments = inputs();
  Executable unharmed(program_, context());
  const std::vector<float> expected = runOnce(unharmed, arguments);
  for (int64_t call = 0; call < kMostCalls; ++call) {
    device_->loseAt(call);
    std::optional<Executable> executable;
    const auto attempt = [&] {
      if (!executable) executable.emplace(program_, context());
      runOnce(*executable, arguments);
    };
    const std::string first = userErrorOf(attempt);
    if (!device_->hasFailed()) break;
    EXPECT_FALSE(first.empty()) << call;
    EXPECT_FALSE(userErrorOf(attempt).empty()) << call;
    executable.reset();
    device_->repair();
  }
  device_->repair();
  EXPECT_EQ(runOnce(unharmed, arguments), expected);
}

TEST_F(DeviceFaults, FaultInAKernelIsReportedByWait) {
  const std::vector<Argument> arguments = inputs();
  Executable executable(program_, context());
  const std::vector<float> expected = runOnce(executable, arguments);
  device_->faultInKernel();
  Outputs outputs = executable.run(arguments);
  for (int i = 0; i < 2; ++i) {
    const std::string error = userErrorOf([&] { outputs.wait(); });
    EXPECT_NE(error.find("illegal address"), std::string::npos) << error;
    EXPECT_EQ(error.find("instruction "), 0u) << error;
  }
  EXPECT_EQ(runOnce(executable, arguments), expected);
}

// Rank 1 fails at each call in turn. Rank 0 must not wait for it.
TEST(DeviceFaultsOfRanks, OtherRanksAreNotified) {
  const Program program = testing::programOf(
      "program p(%x: f32[8]) -> (%y) {\n  slot %y: f32[8]\n"
      "  %y = allocate stream=0\n"
      "  $t = communicate allreduce %x -> %y op=sum stream=0\n"
      "  wait $t stream=0\n}\n");
  testing::HarnessOptions options;
  options.ranks = 2;
  bool failed = true;
  for (int64_t call = 0; failed && call < kMostCalls; ++call) {
    failed = false;
    auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
    std::string errors[2];
    const auto rank = [&](int r) {
      FaultyDevice device;
      errors[r] = userErrorOf([&] {
        Executable executable(program, {&device, worlds[r].get(), nullptr});
        const auto arguments = testing::argumentsOf(program, device, r, options);
        if (r == 1) device.failAt(call);
        executable.run(arguments).wait();
      });
      if (r == 1) failed = device.hasFailed();
    };
    std::thread other([&] { rank(1); });
    rank(0);
    other.join();
    EXPECT_EQ(errors[1].empty(), !failed) << call << errors[1];
  }
}

}  // namespace
}  // namespace heddle::host::device_faults_cpu_test
