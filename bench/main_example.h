#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "host/compile.h"
#include "host/executable.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace heddle::bench {

// A fusion from a file, with its default sizes and random inputs, on one device.
struct MainExample {
  std::unique_ptr<host::Executable> executable;
  std::vector<host::Argument> arguments;
  double bytes = 0;  // size of the inputs and outputs, each counted once

  MainExample(const std::string& path, host::Device& device) {
    std::ifstream file(path);
    HEDDLE_USER_CHECK(file.good(), "{}: cannot read the file", path);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const host::Program program = host::compile(parseFusion(text, path), 1);
    const SizeBindings sizes(program.size_defaults.begin(), program.size_defaults.end());
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const host::Slot& slot = program.slots[program.inputs[i]];
      if (slot.is_scalar) {
        arguments.emplace_back(slot.default_value.value());
        continue;
      }
      const TensorDesc desc = host::inputDesc(program, i, sizes, 0, 1);
      const HostTensor values = randomTensor(desc.dtype, desc.global, 1, slot.name);
      arguments.emplace_back(host::toDevice(device, device.allocator(), values, desc));
      bytes += static_cast<double>(desc.allocBytes());
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      bytes += static_cast<double>(host::outputDesc(program, i, sizes, 0, 1).allocBytes());
    }
    executable =
        std::make_unique<host::Executable>(program, host::Context{&device, nullptr, nullptr});
  }
};

}  // namespace heddle::bench
