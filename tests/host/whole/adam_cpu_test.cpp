#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/text/program_text.h"
#include "tests/host/adam_steps.h"
#include "tests/host/executable_common.h"
#include "tests/host/whole/adam_training.h"
#include "tests/sanitized.h"

namespace heddle::host::adam_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;

TEST(Adam, ThousandStepsInPlaceMatchTheReference) {
  adam_training::expectThousandSteps(*makeCpuDevice({.threads = 2, .adversarial_seed = {}}));
}

TEST(Adam, ParametersOfOddSizesNeedOneLaunch) {
  adam_steps::expectStep(heddle::testing::casesOf(50, 15), 1, DeviceKind::Cpu);
  adam_steps::expectStep(heddle::testing::casesOf(200, 30), 1, DeviceKind::Cpu);
}

TEST(Adam, ParametersOnSeveralRanksNeedOneLaunch) {
  adam_steps::expectStep(heddle::testing::casesOf(50, 15), 2, DeviceKind::Cpu);
  adam_steps::expectStep(heddle::testing::casesOf(200, 30), 3, DeviceKind::Cpu);
}

// A loop of a host program updates a parameter in place: w -= 0.5 * w, three times.
TEST(Adam, LoopOfAHostProgramUpdatesInPlace) {
  const Program program = testing::programOf(R"(
kernel @step {
  fusion step(%w: f32[n], %m: f32[n]) {
    %h = mul(%w, 0.5)
    %m1 = add(%m, %h)
    %w1 = sub(%w, %h)
    return %w1, %m1
  }
}
program main(%w: f32[n], %m: f32[n]) -> (%w in %w, %m in %m) with n = 100 {
  for i in 0 .. 3 {
    launch @step(%w, %m) -> (%w, %m)
  }
})");
  const auto device = makeCpuDevice({.threads = 2, .adversarial_seed = 3});
  Executable executable(program, {device.get(), nullptr, nullptr});
  const Tensor w = deviceFloats(*device, std::vector<float>(100, 8.0f), {100});
  const Tensor m = deviceFloats(*device, std::vector<float>(100, 1.0f), {100});
  const Outputs outputs = executable.run({w, m});
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, w), std::vector<float>(100, 1.0f));
  EXPECT_EQ(floatsOf(*device, m), std::vector<float>(100, 8.0f));
  EXPECT_EQ(outputs.aliased(1), (AliasedTensor{true, 1}));
}

}  // namespace
}  // namespace heddle::host::adam_cpu_test
