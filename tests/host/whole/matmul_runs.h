#pragma once

#include <functional>

#include "host/compile.h"
#include "host/executable.h"
#include "host/tensor.h"
#include "tests/ir/graph/matmul_cases.h"

// Runs the cases of tests/ir/graph/matmul_cases.h on a device.
namespace heddle::host::testing {

inline HostTensor runMatmulFusion(Device& device, const Fusion& fusion,
                                  const std::vector<HostTensor>& inputs) {
  Executable executable(compile(fusion, 1), {&device, nullptr, nullptr});
  std::vector<Argument> arguments;
  for (const HostTensor& input : inputs) {
    arguments.emplace_back(
        toDevice(device, device.allocator(), input, denseDesc(input.dtype, input.sizes)));
  }
  const Outputs outputs = executable.run(arguments);
  outputs.wait();
  return toHost(device, std::get<Tensor>(outputs[0]));
}

// Compares the results of all cases with those of plain loops. `gelu_error` gives the relative
// error of gelu for a dtype.
inline void expectMatmuls(
    Device& device, std::span<const DType> dtypes,
    const std::function<double(DType)>& gelu_error = [](DType) { return 0.0; }) {
  for (DType dtype : dtypes) {
    for (const auto& c : heddle::testing::matmulOpCases()) {
      if (!isFloat(dtype) && c.activation == "gelu_tanh") continue;
      SCOPED_TRACE(std::string(name(dtype)) + " " + heddle::testing::nameOf(c));
      const Fusion fusion = heddle::testing::fusionOf(c, dtype);
      const std::vector<HostTensor> inputs = heddle::testing::inputsOf(fusion);
      heddle::testing::expectMatmul(c, inputs, runMatmulFusion(device, fusion, inputs), 8,
                                    gelu_error(dtype));
    }
  }
}

// Requires that relu keeps NaN. One row of the left operand has a NaN.
inline void expectReluKeepsNan(Device& device) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[16, 16], %w: f32[16, 16], %b: f32[16]) {"
      "%y = linear(%x, %w, %b, activation=relu) return %y }");
  std::vector<HostTensor> inputs = heddle::testing::inputsOf(fusion);
  inputs[0].set(3, std::nan(""));
  const HostTensor y = runMatmulFusion(device, fusion, inputs);
  for (int64_t i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(toDouble(y.at(i)))) << i;
  for (int64_t i = 16; i < 256; ++i) EXPECT_GE(toDouble(y.at(i)), 0) << i;
}

}  // namespace heddle::host::testing
