#pragma once

#include <cmath>

#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "tests/host/executable_common.h"

// Tests 0-d inputs in host memory on any device except the null device. Kernels receive these
// inputs by value.
namespace heddle::host::testing {

// Returns a 0-d tensor in host memory. The caller may overwrite the memory after run() has
// returned.
inline Tensor byValueInput(HostTensor& value) {
  Tensor tensor;
  tensor.data = value.data.get();
  tensor.desc = denseDesc(value.dtype, {});
  tensor.in_host_memory = true;
  return tensor;
}

inline HostTensor valueOf(DType dtype, double value) {
  HostTensor tensor(dtype, {});
  tensor.set(0, value);
  return tensor;
}

// Builds y = x + the sum of one 0-d tensor of each dtype.
inline Fusion sumOfValues() {
  FusionBuilder b("values");
  ValueId y = b.input("x", DType::F32, {Size::symbol("n")});
  for (DType dtype : kAllDTypes) {
    const ValueId value = b.input("v_" + std::string(name(dtype)), dtype, {});
    y = b.pointwise("add", {y, b.cast(value, DType::F32)});
  }
  b.output(y);
  return std::move(b).build();
}

inline void expectValuesOfEveryType(Device& device) {
  FusionExecutor executor(sumOfValues(), {&device, nullptr, nullptr});
  std::vector<HostTensor> values;
  for (DType dtype : kAllDTypes) values.push_back(valueOf(dtype, 1));
  const Tensor x = deviceFloats(device, {0.5f, -2.0f, 8.0f}, {3});
  const auto count = static_cast<float>(values.size());
  for (const bool in_host_memory : {true, false, true}) {
    std::vector<Argument> inputs{x};
    for (HostTensor& value : values) {
      value.set(0, 1.0);
      const TensorDesc desc = denseDesc(value.dtype, {});
      inputs.emplace_back(in_host_memory ? byValueInput(value)
                                         : toDevice(device, device.allocator(), value, desc));
    }
    const Outputs outputs = executor.run(inputs);
    for (HostTensor& value : values) value.set(0, 0.0);  // run() has read the values
    outputs.wait();
    EXPECT_EQ(floatsOf(device, outputs[0]),
              (std::vector<float>{0.5f + count, count - 2.0f, count + 8.0f}));
  }
  EXPECT_EQ(executor.stats().plans, 2);
}

// Requires that a kernel, a matrix product and an indexed load can read the value. The fusion also
// returns the value: unchanged, reshaped to one axis, and unchanged again.
inline void expectValuesInMemory(Device& device) {
  FusionBuilder b("readers");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("m"), Size::symbol("k")});
  const ValueId s = b.input("s", DType::F32, {});
  const ValueId row = b.expand(b.broadcast(s, {0}), {Size::symbol("k")});
  b.output(b.pointwise("mul", {x, s}));
  b.output(b.matmul(x, row));
  b.output(b.take(row, b.iota({Size(2)}, 0), 0));
  b.output(s);
  b.output(b.reshape(s, {Size(1)}));
  b.output(s);
  FusionExecutor executor(std::move(b).build(), {&device, nullptr, nullptr});
  const Tensor x_tensor = deviceFloats(device, {1, 2, 3, 4, 5, 6}, {2, 3});
  HostTensor value = valueOf(DType::F32, 0);
  for (const float factor : {2.0f, -0.5f}) {
    value.set(0, double{factor});
    const Outputs outputs = executor.run({x_tensor, byValueInput(value)});
    value.set(0, std::nan(""));
    outputs.wait();
    const auto times = [&](std::vector<float> values) {
      for (float& v : values) v *= factor;
      return values;
    };
    EXPECT_EQ(floatsOf(device, outputs[0]), times({1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(floatsOf(device, outputs[1]), times({6, 15}));
    EXPECT_EQ(floatsOf(device, outputs[2]), times({1, 1}));
    for (size_t i = 3; i < 6; ++i) EXPECT_EQ(floatsOf(device, outputs[i]), times({1})) << i;
  }
  EXPECT_EQ(executor.stats().held_bytes, 0);
}

}  // namespace heddle::host::testing
