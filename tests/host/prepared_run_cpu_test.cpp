// Tests prepared runs: new addresses and scalars, the checks, and several ranks.
#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/prepared_run.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::prepared_run_cpu_test {
namespace {

using testing::deviceFloats;
using testing::ramp;
using testing::userErrorOf;

// Waits for the run, and returns the elements of an output.
std::vector<float> floatsOf(Device& device, const Outputs& outputs, size_t i = 0) {
  outputs.wait();
  return testing::floatsOf(device, outputs[i]);
}

Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }

constexpr const char* kScaledSum =
    "fusion f(%x: f32[n], %y: f32[n], %s: f64) {\n"
    "  %a = mul(%x, %s)\n  %z = add(%a, %y)\n  return %z\n}\n";

class PreparedRunCpu : public ::testing::Test {
 protected:
  Tensor floats(float first, float step, size_t count = 5) {
    return deviceFloats(*device, ramp(count, first, step), {static_cast<int64_t>(count)});
  }
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
};

TEST_F(PreparedRunCpu, RunsUseTheLatestAddressesAndScalars) {
  const Tensor x = floats(1, 1), y = floats(10, 0), other = floats(0, 2);
  const auto expectRuns = [&](PreparedRun run) {
    EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 12, 2));
    run.setScalar(2, Scalar(3.0));
    EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 13, 3));
    run.setInput(0, other.data);
    EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 10, 6));
    run.setInput(1, x.data);
    EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 1, 7));
  };
  FusionExecutor executor(fusionOf(kScaledSum), {device.get()});
  expectRuns(executor.prepareRun({x, y, Scalar(2.0)}));
  EXPECT_EQ(executor.stats().plans, 1);
  EXPECT_EQ(executor.stats().runs, 4);
  Executable executable(compile(fusionOf(kScaledSum), 1), {device.get()});
  expectRuns(executable.prepareRun({x, y, Scalar(2.0)}));
  EXPECT_EQ(executable.stats().plans, 1);
}

TEST_F(PreparedRunCpu, PreparedRunSharesPlansWithRun) {
  const Tensor x = floats(1, 1), y = floats(0, 0);
  FusionExecutor executor(fusionOf(kScaledSum), {device.get()});
  EXPECT_EQ(floatsOf(*device, executor.run({x, y, Scalar(1.0)})), ramp(5, 1, 1));
  PreparedRun run = executor.prepareRun({x, y, Scalar(2.0)});
  EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 2, 2));
  EXPECT_EQ(executor.stats().plans, 1);
}

TEST_F(PreparedRunCpu, OutputsCanBePreallocated) {
  const Tensor x = floats(1, 1), y = floats(0, 0), first = floats(-1, 0), second = floats(-1, 0);
  RunOptions options;
  options.preallocated = {first};
  Executable executable(compile(fusionOf(kScaledSum), 1), {device.get()});
  PreparedRun run = executable.prepareRun({x, y, Scalar(2.0)}, options);
  run.run().wait();
  run.setOutput(0, second.data);
  run.setScalar(2, Scalar(4.0));
  const Outputs outputs = run.run();
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).data, second.data);
  EXPECT_EQ(testing::floatsOf(*device, first), ramp(5, 2, 2));
  EXPECT_EQ(testing::floatsOf(*device, second), ramp(5, 4, 4));
}

TEST_F(PreparedRunCpu, WrongArgumentsAreRejected) {
  const Tensor x = floats(1, 1), y = floats(0, 0);
  Executable executable(compile(fusionOf(kScaledSum), 1), {device.get()});
  PreparedRun run = executable.prepareRun({x, y, Scalar(2.0)});
  EXPECT_EQ(userErrorOf([&] { run.setInput(0, nullptr); }), "input 0 has no data");
  EXPECT_EQ(userErrorOf([&] { run.setInput(2, x.data); }), "input 2 is a scalar, not a tensor");
  EXPECT_EQ(userErrorOf([&] { run.setScalar(1, Scalar(1.0)); }),
            "input 1 is a tensor, not a scalar");
  EXPECT_EQ(userErrorOf([&] { run.setInput(3, x.data); }), "there is no input 3: the run has 3");
  EXPECT_EQ(userErrorOf([&] { run.setOutput(0, x.data); }),
            "output 0 was not preallocated when the run was prepared");
  EXPECT_EQ(
      userErrorOf([&] { run.setInput(0, static_cast<std::byte*>(x.data) + 4); }),
      "input 0 has an address with an alignment of 4 bytes, the run was prepared for 16 bytes");
  EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 2, 2)) << "the arguments have not changed";
  const std::string message = userErrorOf([&] {
    executable.prepareRun({x, floats(0, 0, 4), Scalar(2.0)});
  });
  EXPECT_NE(message.find("%y"), std::string::npos) << message;
}

// %i decides only where the slice begins. %n decides a size.
TEST_F(PreparedRunCpu, ScalarsMustFitThePlan) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %i: i64, %n: i64) {\n"
                                   "  %a = slice(%x, starts=[%i], stops=[%i + 2])\n"
                                   "  %b = slice(%x, starts=[0], stops=[%n])\n"
                                   "  return %a, %b\n}\n"),
                          {device.get()});
  const Tensor x = floats(0, 1, 8);
  PreparedRun run = executor.prepareRun({x, Scalar(int64_t{1}), Scalar(int64_t{3})});
  run.setScalar(1, Scalar(int64_t{5}));
  const Outputs outputs = run.run();
  EXPECT_EQ(floatsOf(*device, outputs), ramp(2, 5, 1));
  EXPECT_EQ(floatsOf(*device, outputs, 1), ramp(3, 0, 1));
  const auto error = [&](size_t input, Scalar value) {
    return userErrorOf([&] { run.setScalar(input, value); });
  };
  const std::string offset =
      "input 1 (%i) decides an offset, and the run was prepared for the values 0 to 6, got ";
  EXPECT_EQ(error(1, int64_t{7}), offset + "7");
  EXPECT_EQ(error(1, int64_t{-1}), offset + "-1");
  EXPECT_EQ(error(1, 2.5), "input 1 (%i) decides an offset, so it must be an integer, got 2.5");
  EXPECT_EQ(error(2, int64_t{4}),
            "input 2 (%n) decides a size, and the run was prepared for the value 3, got 4");
  EXPECT_EQ(error(2, 2.5), "input 2 (%n) decides a size, so it must be an integer, got 2.5");
  EXPECT_EQ(floatsOf(*device, run.run()), ramp(2, 5, 1)) << "the scalars have not changed";
}

// The caller changes the element of a tensor that decides a size.
TEST_F(PreparedRunCpu, TensorsInHostMemoryMustFitThePlan) {
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %m: i64[]) {\n"
                                   "  %a = slice(%x, starts=[0], stops=[%m])\n"
                                   "  return %a\n}\n"),
                          {device.get()});
  int64_t m = 3;
  Tensor tensor;
  tensor.desc = denseDesc(DType::I64, {});
  tensor.in_host_memory = true;
  tensor.data = &m;
  const Tensor x = floats(0, 1);
  PreparedRun run = executor.prepareRun({x, tensor});
  EXPECT_EQ(floatsOf(*device, run.run()), ramp(3, 0, 1));
  m = 4;
  EXPECT_EQ(userErrorOf([&] { run.run(); }),
            "input 1 (%m) decides a size, and the run was prepared for the value 3, got 4");
  m = 3;
  EXPECT_EQ(floatsOf(*device, run.run()), ramp(3, 0, 1));
}

// The run keeps no reference to its inputs.
TEST_F(PreparedRunCpu, InputsAreNotKept) {
  Executable executable(compile(fusionOf(kScaledSum), 1), {device.get()});
  const Tensor y = floats(1, 0);
  std::weak_ptr<void> owner;
  const auto prepared = [&] {
    const Tensor x = floats(1, 1);
    owner = x.owner;
    return executable.prepareRun({x, y, Scalar(2.0)});
  };
  PreparedRun run = prepared();
  EXPECT_TRUE(owner.expired());
  run.setInput(0, y.data);
  EXPECT_EQ(floatsOf(*device, run.run()), ramp(5, 3, 0));
}

TEST(PreparedRunRanks, RanksSumTheirBlocks) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=2]\nfusion f(%x: f32[2, n] shard(@m, 0: x), %s: f64) {\n"
      "  %a = mul(%x, %s)\n  %y = sum(%a, axes=[0])\n  return %y shard(@m)\n}\n");
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    FusionExecutor executor(fusion, {device.get(), &world});
    const std::vector<TensorDesc> descs = executor.inputDescs({{"n", 4}});
    HostTensor block(DType::F32, {1, 4});
    for (int64_t i = 0; i < 4; ++i) block.set(i, static_cast<double>(i + world.rank()));
    const Tensor x = toDevice(*device, device->allocator(), block, descs[0]);
    PreparedRun run = executor.prepareRun({x, Scalar(1.0)});
    EXPECT_EQ(floatsOf(*device, run.run()), ramp(4, 1, 2));
    run.setScalar(1, Scalar(10.0));
    EXPECT_EQ(floatsOf(*device, run.run()), ramp(4, 10, 20));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace heddle::host::prepared_run_cpu_test
