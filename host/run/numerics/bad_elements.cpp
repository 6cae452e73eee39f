#include "host/run/numerics/bad_elements.h"

#include <cmath>
#include <cstring>
#include <variant>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

// The bits of a float type. An element is NaN or infinite if all bits of `exponent` are set. It is
// infinite if also all bits of `mantissa` are 0 and the type has infinities. For f8e4m3, `exponent`
// includes the mantissa.
struct FloatBits {
  uint64_t exponent;
  uint64_t mantissa;
  bool has_infinity;
};

FloatBits bitsOf(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3:  // only an exponent and a mantissa of ones are NaN
      return {0x7f, 0, false};
    case DType::F8E5M2:
      return {0x7c, 0x03, true};
    case DType::F16:
      return {0x7c00, 0x03ff, true};
    case DType::BF16:
      return {0x7f80, 0x007f, true};
    case DType::F32:
      return {0x7f800000, 0x007fffff, true};
    case DType::F64:
      return {0x7ff0000000000000, 0x000fffffffffffff, true};
    default:
      HEDDLE_CHECK(false, "{} is not a float type", name(dtype));
      return {};
  }
}

// Counts the bad elements of a line, which consists of the elements along the last axis. If `first`
// is -1, it receives the position in the line of the first bad element.
template <class Word>
void countLine(const std::byte* line, int64_t elements, int64_t stride, const FloatBits& bits,
               BadElements& bad, int64_t& first) {
  for (int64_t i = 0; i < elements; ++i) {
    Word word;
    std::memcpy(&word, line + i * stride * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
    if ((word & bits.exponent) != bits.exponent) continue;
    if (first < 0) first = i;
    if (!bits.has_infinity || (word & bits.mantissa) != 0) {
      ++bad.nan;
    } else {
      ++bad.infinite;
    }
  }
}

void countLine(const std::byte* line, int64_t elements, int64_t stride, DType dtype,
               const FloatBits& bits, BadElements& bad, int64_t& first) {
  switch (sizeOf(dtype)) {
    case 1:
      return countLine<uint8_t>(line, elements, stride, bits, bad, first);
    case 2:
      return countLine<uint16_t>(line, elements, stride, bits, bad, first);
    case 4:
      return countLine<uint32_t>(line, elements, stride, bits, bad, first);
    default:
      return countLine<uint64_t>(line, elements, stride, bits, bad, first);
  }
}

// Moves `index` to the next line. Returns false after the last one.
bool nextLine(const TensorDesc& desc, std::vector<int64_t>& index) {
  for (size_t axis = index.size(); axis-- > 0;) {
    if (++index[axis] < desc.sizes[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace

BadElements countBad(const std::byte* memory, const TensorDesc& desc) {
  BadElements bad;
  bad.elements = desc.numel();
  if (bad.elements == 0) return bad;
  const FloatBits bits = bitsOf(desc.dtype);
  const bool has_lines = desc.rank() > 0;
  const int64_t length = has_lines ? desc.sizes.back() : 1;
  const int64_t stride = has_lines ? desc.strides.back() : 1;
  std::vector<int64_t> index(has_lines ? desc.rank() - 1 : 0, 0);
  do {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * desc.strides[axis];
    const bool is_first = bad.count() == 0;
    int64_t first = -1;
    countLine(memory + offset * sizeOf(desc.dtype), length, stride, desc.dtype, bits, bad, first);
    if (!is_first || first < 0) continue;
    bad.first = index;
    if (has_lines) bad.first.push_back(first);
  } while (nextLine(desc, index));
  return bad;
}

BadElements countBad(const Scalar& value) {
  BadElements bad;
  bad.elements = 1;
  const auto* number = std::get_if<double>(&value);  // no other scalar can be NaN or infinite
  if (number == nullptr) return bad;
  bad.nan = std::isnan(*number) ? 1 : 0;
  bad.infinite = std::isinf(*number) ? 1 : 0;
  return bad;
}

std::string describe(const BadElements& bad) {
  std::string text = fmt::format("{} of {} element{} ({} NaN, {} infinite)", bad.count(),
                                 bad.elements, bad.elements == 1 ? "" : "s", bad.nan, bad.infinite);
  if (!bad.first.empty()) text += fmt::format(", the first at [{}]", fmt::join(bad.first, ", "));
  return text;
}

}  // namespace heddle::host
