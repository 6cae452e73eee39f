#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel.h"
#include "tests/host/faulty_device.h"

namespace heddle::host::testing {

// A CPU device whose compiler calls a function before it compiles.
class ObservedCompilerDevice : public FaultyDevice {
 public:
  class Compiler : public codegen::KernelCompiler {
   public:
    Compiler(const codegen::KernelCompiler& inner, const std::function<void()>& before)
        : inner_(inner), before_(before) {}
    codegen::Target target() const override { return inner_.target(); }
    std::string identity() const override { return inner_.identity(); }
    std::vector<std::byte> compile(const codegen::KernelSource& source) const override {
      before_();
      return inner_.compile(source);
    }

   private:
    const codegen::KernelCompiler& inner_;
    const std::function<void()>& before_;
  };

  explicit ObservedCompilerDevice(std::function<void()> before) : before_(std::move(before)) {
    if (FaultyDevice::compiler() != nullptr) {
      compiler_ = std::make_unique<Compiler>(*FaultyDevice::compiler(), before_);
    }
  }
  const codegen::KernelCompiler* compiler() const override { return compiler_.get(); }

 private:
  std::function<void()> before_;
  std::unique_ptr<Compiler> compiler_;
};

}  // namespace heddle::host::testing
