#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/types/tensor.h"

namespace heddle {

// A dense row-major tensor in host memory; copies share the bytes.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::shared_ptr<std::byte[]> data;

  HostTensor() = default;
  HostTensor(DType dtype, std::vector<int64_t> sizes);  // bytes are zero

  int64_t numel() const;
  int64_t bytes() const { return numel() * sizeOf(dtype); }
  Scalar at(int64_t linear) const { return loadElement(data.get(), dtype, linear); }
  void set(int64_t linear, const Scalar& v) { storeElement(data.get(), dtype, linear, v); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data.get());
  }
};

// Values that depend only on (seed, name, linear index): every rank and every device fills a named
// tensor alike. Floats are about normal (mean 0, deviation 1), integers in [-8, 8) (u8: [0,
// 16)), bools fair.
HostTensor randomTensor(DType dtype, std::vector<int64_t> sizes, uint64_t seed,
                        const std::string& name);

// The block of `whole` that a rank holds: sizes desc.sizes at desc.offset, dense.
HostTensor localBlock(const HostTensor& whole, const TensorDesc& desc);

// Copies between a dense host tensor of desc.sizes and memory laid out as `desc` (host memory).
void packInto(void* dst, const TensorDesc& desc, const HostTensor& src);
HostTensor unpackFrom(const void* src, const TensorDesc& desc);

}  // namespace heddle
