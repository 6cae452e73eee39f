#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/outputs.h"
#include "tests/host/executable_common.h"

namespace heddle::host::outputs_cpu_test {
namespace {

using testing::userErrorOf;

TEST(Outputs, AreFoundByPositionAndName) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(
      testing::programOf("program p(%x: f32[n], %k: i64) -> (%x, %k) with n = 2 {\n}\n"),
      {device.get()});
  const Tensor x = testing::deviceFloats(*device, {1, 2}, {2});
  const Outputs outputs = executable.run({x, Scalar(int64_t{7})});
  outputs.wait();
  EXPECT_EQ(outputs.tensor(0).data, x.data);
  EXPECT_EQ(outputs.tensor("x").data, x.data);
  EXPECT_EQ(toInt(outputs.scalar(1)), 7);
  EXPECT_EQ(toInt(outputs.scalar("k")), 7);
  EXPECT_EQ(outputs.name(1), "k");
  EXPECT_EQ(userErrorOf([&] { outputs.tensor(1); }), "output 1 (%k) is a scalar, not a tensor");
  EXPECT_EQ(userErrorOf([&] { outputs.scalar("x"); }), "output 0 (%x) is a tensor, not a scalar");
  EXPECT_EQ(userErrorOf([&] { outputs.tensor("y"); }),
            "there is no output %y: the program has %x, %k");
  EXPECT_EQ(userErrorOf([&] { outputs.tensor(2); }), "there is no output 2: the program has 2");
}

}  // namespace
}  // namespace heddle::host::outputs_cpu_test
