#include "ir/types/host_tensor.h"

#include <cmath>
#include <cstring>

#include "ir/base/check.h"

namespace heddle {
namespace {

int64_t elementCount(DType dtype, const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  int64_t bytes = 0;
  for (int64_t size : sizes) {
    HEDDLE_USER_CHECK(size >= 0, "a tensor of sizes {}: {} is negative", str(sizes), size);
    HEDDLE_USER_CHECK(!__builtin_mul_overflow(count, size, &count),
                      "a tensor of sizes {} has more elements than 64 bits can count", str(sizes));
  }
  HEDDLE_USER_CHECK(!__builtin_mul_overflow(count, sizeOf(dtype), &bytes),
                    "a tensor of sizes {} has more bytes than 64 bits can count", str(sizes));
  return count;
}

// The finalizer of splitmix64: every input bit affects every output bit.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Computes the FNV-1a hash. std::hash is not used, because its results may differ between builds.
uint64_t hashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Sums four uniform integers of 16 bits, centres the sum and scales it to standard deviation 1. All
// steps except the last multiplication are exact, so the result does not depend on a math library.
double normalFrom(uint64_t bits) {
  // sqrt(3) / 2^16. A uniform number in [0, 1) has variance 1/12, so the sum of four has variance
  // 1/3.
  constexpr double kScale = 1.7320508075688772 / 65536.0;
  uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<double>(sum) - 2 * 65535.0) * kScale;
}

// Fills `tensor` with the values of randomTensor(). visit(fill) calls fill(i, linear) for each
// element. i is the index of the element in `tensor`. linear is the row-major index of the element
// in the tensor that randomTensor() would return.
template <class Visit>
void fillRandom(HostTensor& tensor, uint64_t seed, const std::string& name, Visit visit) {
  const uint64_t stream = mix(seed) ^ hashOf(name);
  const auto each = [&](auto* data, auto convert) {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
    visit([&](int64_t i, int64_t linear) {
      data[i] = convert(mix(stream + kGolden * static_cast<uint64_t>(linear + 1)));
    });
  };
  const auto small = [](uint64_t bits) { return static_cast<int>(bits >> 60) - 8; };
  const auto real = [](uint64_t bits) { return static_cast<float>(normalFrom(bits)); };
  switch (tensor.dtype) {
    case DType::Bool:
      return each(tensor.as<uint8_t>(),
                  [](uint64_t bits) { return static_cast<uint8_t>(bits >> 63); });
    case DType::U8:
      return each(tensor.as<uint8_t>(),
                  [](uint64_t bits) { return static_cast<uint8_t>(bits >> 60); });
    case DType::I8:
      return each(tensor.as<int8_t>(),
                  [&](uint64_t bits) { return static_cast<int8_t>(small(bits)); });
    case DType::I32:
      return each(tensor.as<int32_t>(), small);
    case DType::I64:
      return each(tensor.as<int64_t>(), small);
    case DType::F8E4M3:
      return each(tensor.as<uint8_t>(), [&](uint64_t bits) { return f8e4m3FromFloat(real(bits)); });
    case DType::F8E5M2:
      return each(tensor.as<uint8_t>(), [&](uint64_t bits) { return f8e5m2FromFloat(real(bits)); });
    case DType::F16:
      return each(tensor.as<uint16_t>(), [&](uint64_t bits) { return f16FromFloat(real(bits)); });
    case DType::BF16:
      return each(tensor.as<uint16_t>(), [&](uint64_t bits) { return bf16FromFloat(real(bits)); });
    case DType::F32:
      return each(tensor.as<float>(), real);
    case DType::F64:
      return each(tensor.as<double>(), normalFrom);
  }
}

// Copies a block of `sizes` elements between two strided memory regions.
struct StridedCopy {
  const std::vector<int64_t>& sizes;
  int64_t element;  // bytes per element
  const std::byte* src;
  const std::vector<int64_t>& src_strides;  // in elements
  std::byte* dst;
  const std::vector<int64_t>& dst_strides;

  void run() const {
    for (int64_t size : sizes) {
      if (size == 0) return;
    }
    if (sizes.empty()) {
      std::memcpy(dst, src, element);
      return;
    }
    const size_t last = sizes.size() - 1;
    std::vector<int64_t> index(last, 0);
    do {
      row(offset(index, src_strides), offset(index, dst_strides), last);
    } while (next(index));
  }

 private:
  int64_t offset(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) const {
    int64_t total = 0;
    for (size_t i = 0; i < index.size(); ++i) total += index[i] * strides[i];
    return total * element;
  }

  bool next(std::vector<int64_t>& index) const {
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) return true;
      index[i] = 0;
    }
    return false;
  }

  void row(int64_t src_offset, int64_t dst_offset, size_t last) const {
    const std::byte* from = src + src_offset;
    std::byte* to = dst + dst_offset;
    if (src_strides[last] == 1 && dst_strides[last] == 1) {
      std::memcpy(to, from, sizes[last] * element);
      return;
    }
    for (int64_t i = 0; i < sizes[last]; ++i) {
      std::memcpy(to, from, element);
      from += src_strides[last] * element;
      to += dst_strides[last] * element;
    }
  }
};

}  // namespace

HostTensor::HostTensor(DType type, std::vector<int64_t> tensor_sizes)
    : dtype(type), sizes(std::move(tensor_sizes)) {
  const size_t count = elementCount(dtype, sizes) * sizeOf(dtype);
  data = std::make_shared<std::byte[]>(count);
}

int64_t HostTensor::numel() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

HostTensor randomTensor(DType dtype, std::vector<int64_t> sizes, uint64_t seed,
                        const std::string& name) {
  HostTensor tensor(dtype, std::move(sizes));
  fillRandom(tensor, seed, name, [&](auto fill) {
    for (int64_t i = 0, count = tensor.numel(); i < count; ++i) fill(i, i);
  });
  return tensor;
}

std::vector<int64_t> indicesOf(const std::vector<IndexRange>& ranges) {
  std::vector<int64_t> indices;
  for (const IndexRange& range : ranges) {
    for (int64_t i = range.begin; i < range.end; ++i) indices.push_back(i);
  }
  return indices;
}

HostTensor randomElements(DType dtype, const std::vector<int64_t>& sizes,
                          const std::vector<std::vector<IndexRange>>& axes, uint64_t seed,
                          const std::string& name) {
  std::vector<int64_t> counts;
  for (const std::vector<IndexRange>& ranges : axes) {
    counts.push_back(0);
    for (const IndexRange& range : ranges) counts.back() += range.end - range.begin;
  }
  // Create the tensor before the lists of indices: the constructor of the tensor throws if there
  // are too many elements. In this case the lists could exhaust the memory.
  HostTensor tensor(dtype, counts);
  std::vector<std::vector<int64_t>> indices;  // per axis except the last
  for (size_t axis = 0; axis + 1 < axes.size(); ++axis) indices.push_back(indicesOf(axes[axis]));
  fillRandom(tensor, seed, name, [&](auto fill) {
    if (axes.empty()) return fill(0, 0);
    const int64_t count = tensor.numel();
    for (int64_t at = 0; at < count;) {
      int64_t first = 0;  // linear index of element 0 of the row
      int64_t rest = at / counts.back();
      int64_t stride = sizes.back();
      for (size_t axis = indices.size(); axis-- > 0; stride *= sizes[axis]) {
        first += indices[axis][rest % counts[axis]] * stride;
        rest /= counts[axis];
      }
      for (const IndexRange& range : axes.back()) {
        for (int64_t i = range.begin; i < range.end; ++i) fill(at++, first + i);
      }
    }
  });
  return tensor;
}

HostTensor randomBlock(const TensorDesc& desc, uint64_t seed, const std::string& name) {
  std::vector<std::vector<IndexRange>> axes;
  for (size_t axis = 0; axis < desc.rank(); ++axis) {
    axes.push_back({{desc.offset[axis], desc.offset[axis] + desc.sizes[axis]}});
  }
  return randomElements(desc.dtype, desc.global, axes, seed, name);
}

HostTensor localBlock(const HostTensor& whole, const TensorDesc& desc) {
  HEDDLE_CHECK(whole.sizes == desc.global && whole.dtype == desc.dtype,
               "expected a block of {} {}, but the unsharded tensor is {} {}", name(desc.dtype),
               str(desc.global), name(whole.dtype), str(whole.sizes));
  HostTensor block(desc.dtype, desc.sizes);
  const std::vector<int64_t> src = stridesFor(whole.sizes, rowMajor(whole.sizes.size()));
  const std::vector<int64_t> dst = stridesFor(block.sizes, rowMajor(block.sizes.size()));
  int64_t first = 0;
  for (size_t i = 0; i < src.size(); ++i) {
    HEDDLE_CHECK(desc.offset[i] >= 0 && desc.offset[i] + desc.sizes[i] <= whole.sizes[i],
                 "axis {}: a block of {} at {} is outside {}", i, desc.sizes[i], desc.offset[i],
                 whole.sizes[i]);
    first += desc.offset[i] * src[i];
  }
  const int64_t element = sizeOf(desc.dtype);
  StridedCopy{block.sizes, element, whole.data.get() + first * element, src, block.data.get(), dst}
      .run();
  return block;
}

void packInto(void* dst, const TensorDesc& desc, const HostTensor& src) {
  HEDDLE_CHECK(src.sizes == desc.sizes && src.dtype == desc.dtype,
               "packing {} {} into memory for {} {}", name(src.dtype), str(src.sizes),
               name(desc.dtype), str(desc.sizes));
  const std::vector<int64_t> dense = stridesFor(src.sizes, rowMajor(src.sizes.size()));
  StridedCopy{desc.sizes, sizeOf(desc.dtype),           src.data.get(),
              dense,      static_cast<std::byte*>(dst), desc.strides}
      .run();
}

HostTensor unpackFrom(const void* src, const TensorDesc& desc) {
  HostTensor out(desc.dtype, desc.sizes);
  const std::vector<int64_t> dense = stridesFor(out.sizes, rowMajor(out.sizes.size()));
  StridedCopy{desc.sizes,   sizeOf(desc.dtype), static_cast<const std::byte*>(src),
              desc.strides, out.data.get(),     dense}
      .run();
  return out;
}

}  // namespace heddle
