// A library for tests/dlpack_numpy.py, which calls these functions through ctypes. It passes DLPack
// tensors between Python and a CPU device. ctypes releases the GIL during each call.
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "host/device/cpu/cpu_device.h"
#include "host/dlpack/dlpack.h"
#include "host/fusion_executor.h"
#include "ir/graph/builder.h"

namespace {

using namespace heddle;

host::Device& device() {
  static const std::unique_ptr<host::Device> cpu =
      host::makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  return *cpu;
}

// Returns an executor of y = x + x.
host::FusionExecutor& doubled() {
  static const auto executor = [] {
    FusionBuilder b("doubled");
    const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("m")});
    b.output(b.pointwise("add", {x, x}));
    return std::make_unique<host::FusionExecutor>(std::move(b).build(),
                                                  host::Context{&device(), nullptr, nullptr});
  }();
  return *executor;
}

std::string& text() {
  static thread_local std::string latest;
  return latest;
}

// Returns the result of `call`, or nullptr after an error. heddle_text() then returns the message.
template <class Call>
auto guarded(const Call& call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    text() = e.what();
    return nullptr;
  }
}

}  // namespace

extern "C" {

// Returns the latest message or description.
const char* heddle_text() { return text().c_str(); }

// Returns a tensor that owns the managed tensor, or nullptr.
host::Tensor* heddle_import(void* managed, int is_versioned, int is_read_only) {
  return guarded([&] {
    const auto access =
        is_read_only != 0 ? host::DLPackAccess::ReadOnly : host::DLPackAccess::ReadWrite;
    return new host::Tensor(
        is_versioned != 0
            ? host::fromDLPack(device(), static_cast<DLManagedTensorVersioned*>(managed), access)
            : host::fromDLPack(device(), static_cast<DLManagedTensor*>(managed)));
  });
}

// Returns a managed tensor, or nullptr.
void* heddle_export(const host::Tensor* tensor, int is_versioned, int is_read_only) {
  return guarded([&]() -> void* {
    const auto access =
        is_read_only != 0 ? host::DLPackAccess::ReadOnly : host::DLPackAccess::ReadWrite;
    if (is_versioned != 0) return host::toDLPackVersioned(device(), *tensor, access);
    return host::toDLPack(device(), *tensor);
  });
}

// Writes a text such as "f32 [2, 3] [3, 1]": the dtype, the sizes and the strides.
void heddle_describe(const host::Tensor* tensor) {
  const TensorDesc& desc = tensor->desc;
  text() = std::string(name(desc.dtype)) + " " + str(desc.sizes) + " " + str(desc.strides);
}

void* heddle_data(const host::Tensor* tensor) { return tensor->data; }

// Runs y = x + x, waits, and returns y, or nullptr.
host::Tensor* heddle_double(const host::Tensor* x) {
  return guarded([&] {
    const host::Outputs outputs = doubled().run({*x});
    outputs.wait();
    return new host::Tensor(std::get<host::Tensor>(outputs[0]));
  });
}

// Deletes a tensor on a thread that Python does not know.
void heddle_delete(host::Tensor* tensor) {
  std::thread([tensor] { delete tensor; }).join();
}

}  // extern "C"
