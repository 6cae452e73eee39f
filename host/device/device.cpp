#include "host/device/device.h"

#include "host/device/cuda_module.h"
#include "host/device/load_module.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Returns a text that names the instruction, or "" if it is unknown (-1).
std::string messagePrefix(int32_t instruction, const std::vector<std::string>* texts) {
  if (instruction < 0) return "";
  if (texts == nullptr || static_cast<size_t>(instruction) >= texts->size()) {
    return fmt::format("instruction {}: ", instruction);
  }
  return fmt::format("instruction {} ({}): ", instruction, (*texts)[instruction]);
}

}  // namespace

std::string_view name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Null:
      return "null";
    case DeviceKind::Cpu:
      return "cpu";
    case DeviceKind::Cuda:
      return "cuda";
  }
  return "?";
}

std::string saidBy(const std::bad_alloc& why) {
  const std::string_view text = why.what();
  return text == std::bad_alloc().what() ? "" : fmt::format("; {}", text);
}

void ErrorSink::report(std::exception_ptr error, int32_t instruction) noexcept {
  std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  instruction_ = instruction;
  failed_.store(true, std::memory_order_release);
  if (any_error_ != nullptr) any_error_->store(true, std::memory_order_release);
}

void ErrorSink::rethrow(const std::vector<std::string>* instruction_texts) const {
  std::exception_ptr error;
  int32_t instruction = -1;
  // The error is copied, so that the mutex is not locked while the exception propagates.
  {
    std::lock_guard lock(mutex_);
    error = error_;
    instruction = instruction_;
  }
  if (!error) return;
  const std::string where = messagePrefix(instruction, instruction_texts);
  try {
    std::rethrow_exception(error);
  } catch (const UserError& e) {
    throw withText(e, where + e.what());
  } catch (const std::bad_alloc& e) {
    throw UserError(where + "out of memory" + saidBy(e), ErrorCode::OutOfMemory);
  } catch (const InternalError& e) {
    throw InternalError(where + e.what());
  } catch (const std::exception& e) {
    throw InternalError(where + "unexpected exception: " + e.what());
  } catch (...) {
    throw InternalError(where + "unexpected exception of unknown type");
  }
}

void ErrorSink::clear() {
  std::lock_guard lock(mutex_);
  error_ = nullptr;
  instruction_ = -1;
  failed_.store(false, std::memory_order_release);
}

std::unique_ptr<Device> makeCudaDevice(int ordinal) { return cudaModule().makeDevice(ordinal); }

int cudaDeviceCount(std::string& why) {
  const CudaModule* module = findCudaModule(why);
  return module == nullptr ? 0 : module->deviceCount(why);
}

}  // namespace heddle::host
