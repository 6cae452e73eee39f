#pragma once

#include <array>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "host/dlpack/dlpack.h"
#include "host/dlpack/dlpack_abi.h"

namespace heddle::host::testing {

// A library that gives a tensor to heddle. The memory belongs to the test. `Managed` is one of the
// two structs of DLPack.
template <class Managed>
struct Producer {
  Producer(void* data, std::vector<int64_t> s, DLDataType type = {dlpack::kFloat, 32, 1})
      : sizes(std::move(s)) {
    if constexpr (kHasVersion) managed.version = dlpack::kVersion;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) {
      auto* producer = static_cast<Producer*>(self->manager_ctx);
      ++producer->deleted;
      producer->deleted_on = std::this_thread::get_id();
    };
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = data;
    tensor.device = {dlpack::kCpu, 0};
    tensor.ndim = static_cast<int32_t>(sizes.size());
    tensor.dtype = type;
    tensor.shape = sizes.data();
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void setStrides(std::vector<int64_t> s) {
    strides = std::move(s);
    managed.dl_tensor.strides = strides.data();
  }

  static constexpr bool kHasVersion = !std::is_same_v<Managed, DLManagedTensor>;
  Managed managed = {};
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int deleted = 0;  // number of calls of the deleter
  std::thread::id deleted_on;
};

// Calls toDLPack() or toDLPackVersioned().
template <class Managed>
Managed* exported(Device& device, const Tensor& tensor) {
  if constexpr (Producer<Managed>::kHasVersion) {
    return toDLPackVersioned(device, tensor);
  } else {
    return toDLPack(device, tensor);
  }
}

template <class Managed>
void release(Managed* managed) {
  managed->deleter(managed);
}

}  // namespace heddle::host::testing
