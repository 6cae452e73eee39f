// Trains 50 parameters with Adam in place, one run per step. The expected values were computed with
// 64-bit floats (tests/goldens/training/adam.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "tests/host/adam_steps.h"
#include "tests/host/executable_common.h"

namespace heddle::host::adam_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;

constexpr int kParameters = 50;
constexpr int kSteps = 1000;

std::vector<int64_t> sizesOf(int p) { return {p % 7 + 1, p % 5 + 3}; }

// Appends ops that update one parameter. Adds the new parameter and its moments as outputs in the
// inputs.
void addUpdate(FusionBuilder& b, int p, ValueId rate, ValueId root) {
  std::vector<Size> sizes;
  for (int64_t size : sizesOf(p)) sizes.emplace_back(size);
  const auto input = [&](const char* name) {
    return b.input(fmt::format("{}{}", name, p), DType::F32, sizes);
  };
  const auto op = [&](const char* name, ValueId x, ValueId y) { return b.pointwise(name, {x, y}); };
  const auto number = [&](double x) { return b.constant(x); };
  const ValueId w = input("w"), m = input("m"), v = input("v");
  const ValueId target = input("target"), noise = input("noise");
  const ValueId g = op("add", op("sub", w, target), noise);
  const ValueId m1 = op("add", op("mul", m, number(0.9)), op("mul", g, number(0.1)));
  const ValueId squares = op("mul", op("mul", g, g), number(0.001));
  const ValueId v1 = op("add", op("mul", v, number(0.999)), squares);
  const ValueId scale = op("add", op("div", b.pointwise("sqrt", {v1}), root), number(1e-8));
  const ValueId w1 = op("sub", w, op("div", op("mul", m1, rate), scale));
  b.output(w1, OutputReuse{w, true});
  b.output(m1, OutputReuse{m, true});
  b.output(v1, OutputReuse{v, true});
}

Fusion adam() {
  FusionBuilder b("adam");
  const ValueId t = b.scalarInput("t", DType::F64);
  const auto correction = [&](double beta) {
    return b.pointwise("sub", {b.constant(1.0), b.pointwise("pow", {b.constant(beta), t})});
  };
  const ValueId rate = b.pointwise("div", {b.constant(1e-3), correction(0.9)});
  const ValueId root = b.pointwise("sqrt", {correction(0.999)});
  for (int p = 0; p < kParameters; ++p) addUpdate(b, p, rate, root);
  return std::move(b).build();
}

// The tensors of one parameter. The CPU device uses the memory of the host, so the test writes the
// noise directly.
struct Parameter {
  Parameter(Device& device, int p) : number(p) {
    const std::vector<int64_t> sizes = sizesOf(p);
    count = static_cast<size_t>(sizes[0] * sizes[1]);
    const auto tensor = [&](const auto& value) {
      std::vector<float> values(count);
      for (size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(value(static_cast<double>(i)));
      }
      return deviceFloats(device, values, sizes);
    };
    w = tensor([&](double i) { return std::sin(0.37 * i + p); });
    m = tensor([](double) { return 0.0; });
    v = tensor([](double) { return 0.0; });
    target = tensor([&](double i) { return 0.5 * std::cos(0.11 * i - p); });
    noise = tensor([](double) { return 0.0; });
  }
  void setNoise(int t) {
    auto* values = static_cast<float*>(noise.data);
    for (size_t i = 0; i < count; ++i) {
      const double angle = 0.7 * static_cast<double>(i) + 0.3 * number + 0.05 * t;
      values[i] = static_cast<float>(0.1 * std::cos(angle));
    }
  }
  int number;
  size_t count = 0;
  Tensor w, m, v, target, noise;
};

void expectNear(const std::vector<float>& got, const nlohmann::json& expected, int p) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i].get<double>(), 1e-5) << "parameter " << p << ", element " << i;
  }
}

TEST(Adam, ThousandStepsInPlaceMatchTheReference) {
  const auto device = makeCpuDevice({.threads = 2, .adversarial_seed = {}});
  TrackingAllocator memory(device->allocator());
  std::vector<Parameter> parameters;
  std::vector<Argument> inputs{Scalar(0.0)};
  for (int p = 0; p < kParameters; ++p) parameters.emplace_back(*device, p);
  for (const Parameter& x : parameters) {
    for (const Tensor* tensor : {&x.w, &x.m, &x.v, &x.target, &x.noise}) inputs.push_back(*tensor);
  }
  FusionExecutor executor(adam(), {device.get(), nullptr, nullptr});
  RunOptions options;
  options.allocator = &memory;
  for (int t = 1; t <= kSteps; ++t) {
    for (Parameter& parameter : parameters) parameter.setNoise(t);
    inputs[0] = Scalar(static_cast<double>(t));
    executor.run(inputs, options).wait();
    ASSERT_EQ(memory.heldBytes(), 0) << "after step " << t;
  }
  EXPECT_EQ(executor.stats().plans, 1);
  EXPECT_EQ(executor.stats().peak_bytes, 0);
  std::ifstream file("tests/goldens/training/adam.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  for (int p = 0; p < kParameters; ++p) {
    const Parameter& parameter = parameters[static_cast<size_t>(p)];
    const nlohmann::json& of = expected[static_cast<size_t>(p)];
    expectNear(floatsOf(*device, parameter.w), of["w"], p);
    expectNear(floatsOf(*device, parameter.m), of["m"], p);
    expectNear(floatsOf(*device, parameter.v), of["v"], p);
  }
}

TEST(Adam, ParametersOfOddSizesNeedOneLaunch) {
  adam_steps::expectStep(50, 1, DeviceKind::Cpu);
  adam_steps::expectStep(200, 1, DeviceKind::Cpu);
}

TEST(Adam, ParametersOnSeveralRanksNeedOneLaunch) {
  adam_steps::expectStep(50, 2, DeviceKind::Cpu);
  adam_steps::expectStep(200, 3, DeviceKind::Cpu);
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
