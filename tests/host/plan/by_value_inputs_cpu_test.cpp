// Tests 0-d inputs in host memory on the CPU device.
#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/plan/by_value_inputs.h"
#include "host/tensor.h"
#include "ir/reference/reference.h"
#include "tests/host/plan/by_value_inputs.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::by_value_inputs_cpu_test {
namespace {

using testing::byValueInput;
using testing::userErrorOf;
using testing::valueOf;

TEST(ByValueInputsCpu, EveryDtypeIsPassedByValue) {
  testing::expectValuesOfEveryType(*makeCpuDevice());
  testing::expectValuesOfEveryType(*makeCpuDevice({.threads = 1, .adversarial_seed = 7}));
}

TEST(ByValueInputsCpu, OtherInstructionsReadDeviceMemory) {
  testing::expectValuesInMemory(*makeCpuDevice({.threads = 1, .adversarial_seed = 3}));
}

TEST(ByValueInputsCpu, ValueIsReturnedInAPreallocatedOutput) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
  FusionBuilder b("same");
  b.output(b.input("s", DType::I64, {}));
  FusionExecutor executor(std::move(b).build(), {device.get(), nullptr, nullptr});
  HostTensor value(DType::I64, {});
  value.set(0, int64_t{1} << 60 | 1);
  HostTensor out(DType::I64, {});
  RunOptions options;
  options.preallocated = {{out.data.get(), denseDesc(DType::I64, {}), nullptr}};
  executor.run({byValueInput(value)}, options).wait();
  EXPECT_EQ(out.at(0), Scalar(int64_t{1} << 60 | 1));
}

TEST(ByValueInputsCpu, CollectivesReadDeviceMemory) {
  const Program program = testing::programOf(R"(
mesh @m = [x=ranks]
program p(%s: f32[]) -> (%y) {
  slot %y: f32[]
  %y = allocate stream=0
  !ready = record_event stream=0
  wait_event !ready stream=1
  $t = communicate allreduce %s -> %y team=@m[x] op=sum stream=1
  wait $t stream=0
}
)");
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(program, {device.get(), world.get(), nullptr});
    HostTensor value = valueOf(DType::F32, rank + 1.5);
    const Outputs outputs = executable.run({byValueInput(value)});
    value.set(0, 100.0);
    outputs.wait();
    EXPECT_EQ(testing::floatsOf(*device, outputs[0]), (std::vector<float>{4}));
  });
}

TEST(ByValueInputsCpu, TensorsWithAxesAreRefused) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(testing::sumOfValues(), {device.get(), nullptr, nullptr});
  HostTensor x(DType::F32, {3});
  Tensor tensor = byValueInput(x);
  tensor.desc = denseDesc(DType::F32, {3});
  std::vector<Argument> inputs{tensor};
  std::vector<HostTensor> values;
  for (DType dtype : kAllDTypes) values.push_back(valueOf(dtype, 1));
  for (HostTensor& value : values) inputs.emplace_back(byValueInput(value));
  EXPECT_EQ(
      userErrorOf([&] { executor.run(inputs); }),
      "input %x is a tensor [3] in host memory; only a tensor without axes can be passed by value, "
      "toDevice() copies others");
}

TEST(ByValueInputsCpu, RewrittenSegmentComputesTheSame) {
  const Fusion segment = testing::sumOfValues();
  std::vector<bool> by_value(segment.inputs().size(), true);
  by_value[0] = false;
  const Fusion made = withValues(segment, by_value);
  ReferenceInputs inputs;
  for (size_t i = 0; i < made.inputs().size(); ++i) {
    const ValueId id = made.inputs()[i];
    EXPECT_EQ(made.value(id).is_scalar, i > 0);
    if (i > 0) inputs.scalars[id] = Scalar(true);
  }
  inputs.tensors[made.inputs()[0]] = HostTensor(DType::F32, {1});
  inputs.tensors[made.inputs()[0]].set(0, 0.5);
  EXPECT_EQ(evaluateReference(made, inputs, {{"n", 1}})[0].at(0), Scalar(11.5));
}

}  // namespace
}  // namespace heddle::host::by_value_inputs_cpu_test
