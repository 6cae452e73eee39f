#pragma once

#include "host/executable.h"
#include "tests/goldens/goldens.h"

// Runs the cases of tests/goldens/ on a device.
namespace heddle::host::testing {

inline HostTensor runGolden(Device& device, codegen::ImageCache& images,
                            const heddle::testing::Golden& golden) {
  Executable executable(compile(heddle::testing::fusionOf(golden), 1), {&device, nullptr, &images});
  std::vector<Argument> arguments;
  for (const HostTensor& input : golden.inputs) {
    arguments.emplace_back(
        toDevice(device, device.allocator(), input, denseDesc(input.dtype, input.sizes)));
  }
  const Outputs outputs = executable.run(arguments);
  outputs.wait();
  return toHost(device, std::get<Tensor>(outputs[0]));
}

// Operand types that stand for the others: compiling all of them would take minutes.
inline bool isChosen(const heddle::testing::Golden& golden) {
  const DType first = golden.inputs[0].dtype;
  for (const HostTensor& input : golden.inputs) {
    const bool condition = golden.op == "where" && input.dtype == DType::Bool;
    if (input.dtype != first && !condition) return false;
  }
  return first == DType::F32 || first == DType::I64 || golden.op == "where" ||
         golden.op == "matmul" || golden.attrs.contains("axes");
}

inline void expectGoldens(Device& device) {
  codegen::ImageCache images;
  int cases = 0;
  for (const heddle::testing::Golden& golden : heddle::testing::readGoldens()) {
    if (!isChosen(golden)) continue;
    ++cases;
    EXPECT_EQ(heddle::testing::compare(runGolden(device, images, golden), golden), "")
        << golden.text;
  }
  EXPECT_GT(cases, 150);
}

}  // namespace heddle::host::testing
