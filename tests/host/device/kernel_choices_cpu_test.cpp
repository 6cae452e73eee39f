#include <gtest/gtest.h>

#include <string>

#include "host/device/cpu/cpu_device.h"
#include "host/device/kernel_choices.h"
#include "tests/host/executable_common.h"

namespace heddle::host::kernel_choices_cpu_test {
namespace {

TEST(KernelChoices, AlgorithmsOfLibraryCallsAreFoundByTheirQuestion) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  const std::string key = algorithmKey("8 8 8 bf16", *device);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_NE(key, algorithmKey("8 8 16 bf16", *device));
  const KernelChoices choices{{{key, "algorithm 01ab"}}, false};
  EXPECT_EQ(chosenAlgorithm("8 8 8 bf16", choices, *device), "01ab");
  EXPECT_EQ(chosenAlgorithm("8 8 16 bf16", choices, *device), std::nullopt);
}

TEST(KernelChoices, MissingAlgorithmIsAnErrorOnlyIfTheFileHasAlgorithms) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  const KernelChoices with{{{algorithmKey("known", *device), "algorithm 01ab"}}, true};
  const std::string error =
      testing::userErrorOf([&] { chosenAlgorithm("unknown", with, *device); });
  EXPECT_NE(error.find("a library call has no choice on this device"), std::string::npos) << error;
  EXPECT_NE(error.find("the call is: unknown"), std::string::npos) << error;
  const KernelChoices without{{{std::string(64, 'a'), "loops unroll=2"}}, true};
  EXPECT_EQ(chosenAlgorithm("unknown", without, *device), std::nullopt);
}

}  // namespace
}  // namespace heddle::host::kernel_choices_cpu_test
