#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/types/tensor.h"

namespace heddle {

// A dense row-major tensor in host memory. Copies share the bytes. A default-constructed HostTensor
// has no data.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::shared_ptr<std::byte[]> data;

  HostTensor() = default;
  HostTensor(DType dtype, std::vector<int64_t> sizes);  // filled with zero bytes

  int64_t numel() const;
  int64_t bytes() const { return numel() * sizeOf(dtype); }
  Scalar at(int64_t linear) const { return loadElement(data.get(), dtype, linear); }
  void set(int64_t linear, const Scalar& v) { storeElement(data.get(), dtype, linear, v); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data.get());
  }
};

// Returns a tensor of pseudorandom values. Each value depends only on the dtype, the seed, the name
// and the linear index. A tensor therefore has the same values on every rank and every device.
//  - Floats are nearly normal, with mean 0 and standard deviation 1.
//  - Integers are uniform in [-8, 8), except u8, which is uniform in [0, 16).
//  - Bools are true with probability 1/2.
HostTensor randomTensor(DType dtype, std::vector<int64_t> sizes, uint64_t seed,
                        const std::string& name);

// The indices begin, begin + 1, ..., end - 1 of one axis.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const IndexRange&) const = default;
};
// Returns the indices of all ranges, in the order of the ranges. Needs 8 bytes for each index.
std::vector<int64_t> indicesOf(const std::vector<IndexRange>& ranges);

// Returns the selected elements of randomTensor(dtype, sizes, seed, name), and computes only these.
// axes[i] selects indices of axis i. The result is dense and has every combination of the selected
// indices, in the order of the ranges.
HostTensor randomElements(DType dtype, const std::vector<int64_t>& sizes,
                          const std::vector<std::vector<IndexRange>>& axes, uint64_t seed,
                          const std::string& name);
// Returns one rank's block of randomTensor(desc.dtype, desc.global, seed, name). `desc` describes
// the block.
HostTensor randomBlock(const TensorDesc& desc, uint64_t seed, const std::string& name);

// Returns a dense copy of one rank's block of the unsharded tensor `whole`. `desc` describes the
// block: the block starts at the index desc.offset and has desc.sizes elements along each axis.
HostTensor localBlock(const HostTensor& whole, const TensorDesc& desc);

// packInto() copies the tensor `src`, which has the sizes desc.sizes, to the host memory `dst`,
// which has the strides of `desc`. unpackFrom() copies in the opposite direction and returns a
// dense tensor.
void packInto(void* dst, const TensorDesc& desc, const HostTensor& src);
HostTensor unpackFrom(const void* src, const TensorDesc& desc);

}  // namespace heddle
