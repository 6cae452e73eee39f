#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "tests/host/executable_common.h"

// Trains 50 parameters with Adam in place, one run per step. The expected values were computed with
// 64-bit floats (tests/goldens/training/adam.py).
namespace heddle::host::adam_training {

using testing::deviceFloats;
using testing::floatsOf;

constexpr int kParameters = 50;
constexpr int kSteps = 1000;

inline std::vector<int64_t> sizesOf(int p) { return {p % 7 + 1, p % 5 + 3}; }

// Appends ops that update one parameter. Adds the new parameter and its moments as outputs in the
// inputs.
inline void addUpdate(FusionBuilder& b, int p, ValueId rate, ValueId root) {
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

inline Fusion adam() {
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

// The tensors of one parameter.
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
  // Enqueues a copy of the noise of step t. The copy reads `noise_of_step`, so it must have ended
  // before the next call.
  void setNoise(Device& device, Stream stream, int t) {
    noise_of_step.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const double angle = 0.7 * static_cast<double>(i) + 0.3 * number + 0.05 * t;
      noise_of_step[i] = static_cast<float>(0.1 * std::cos(angle));
    }
    device.copy(noise.data, noise_of_step.data(), static_cast<int64_t>(count * sizeof(float)),
                stream, {});
  }
  int number;
  size_t count = 0;
  std::vector<float> noise_of_step;
  Tensor w, m, v, target, noise;
};

inline void expectNear(const std::vector<float>& got, const nlohmann::json& expected, int p) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i].get<double>(), 1e-5) << "parameter " << p << ", element " << i;
  }
}

inline void train(Device& device, Stream stream) {
  TrackingAllocator memory(device.allocator());
  std::vector<Parameter> parameters;
  std::vector<Argument> inputs{Scalar(0.0)};
  for (int p = 0; p < kParameters; ++p) parameters.emplace_back(device, p);
  for (const Parameter& x : parameters) {
    for (const Tensor* tensor : {&x.w, &x.m, &x.v, &x.target, &x.noise}) inputs.push_back(*tensor);
  }
  FusionExecutor executor(adam(), {&device, nullptr, nullptr});
  RunOptions options;
  options.allocator = &memory;
  options.stream = stream;
  for (int t = 1; t <= kSteps; ++t) {
    for (Parameter& parameter : parameters) parameter.setNoise(device, stream, t);
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
    expectNear(floatsOf(device, parameter.w), of["w"], p);
    expectNear(floatsOf(device, parameter.m), of["m"], p);
    expectNear(floatsOf(device, parameter.v), of["v"], p);
  }
}

// Trains for 1,000 steps and compares the parameters and their moments. Requires that no memory is
// held after any step.
inline void expectThousandSteps(Device& device) {
  const Stream stream = device.createStream();
  train(device, stream);
  device.destroyStream(stream);
}

}  // namespace heddle::host::adam_training
