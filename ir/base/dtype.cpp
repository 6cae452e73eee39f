#include "ir/base/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ir/base/check.h"

namespace heddle {
namespace {

template <class T>
T read(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value,
              sizeof(T));
}

bool isTrue(const Scalar& scalar) {
  if (const bool* b = std::get_if<bool>(&scalar)) return *b;
  if (const int64_t* i = std::get_if<int64_t>(&scalar)) return *i != 0;
  return std::get<double>(scalar) != 0.0;
}

int64_t intOf(DType dtype, const Scalar& scalar) {
  const double* real = std::get_if<double>(&scalar);
  return real != nullptr ? intFrom(dtype, *real) : intFrom(dtype, toInt(scalar));
}

// Converts a scalar to f32. An i64 is converted directly, because a conversion through double would
// round twice.
float floatOf(const Scalar& scalar) {
  if (const int64_t* i = std::get_if<int64_t>(&scalar)) return static_cast<float>(*i);
  return static_cast<float>(toDouble(scalar));
}

}  // namespace

int64_t sizeOf(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::U8:
    case DType::I8:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return 1;
    case DType::F16:
    case DType::BF16:
      return 2;
    case DType::I32:
    case DType::F32:
      return 4;
    case DType::I64:
    case DType::F64:
      return 8;
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "bool";
    case DType::U8:
      return "u8";
    case DType::I8:
      return "i8";
    case DType::I32:
      return "i32";
    case DType::I64:
      return "i64";
    case DType::F8E4M3:
      return "f8e4m3";
    case DType::F8E5M2:
      return "f8e5m2";
    case DType::F16:
      return "f16";
    case DType::BF16:
      return "bf16";
    case DType::F32:
      return "f32";
    case DType::F64:
      return "f64";
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

std::optional<DType> dtypeFromName(std::string_view text) {
  for (DType dtype : kAllDTypes) {
    if (name(dtype) == text) return dtype;
  }
  return std::nullopt;
}

// DType lists the types in the order of promotion: integers first, then floats.
bool isFloat(DType dtype) { return dtype >= DType::F8E4M3; }

bool isFloat8(DType dtype) { return dtype == DType::F8E4M3 || dtype == DType::F8E5M2; }

IntRange rangeOf(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return {0, 1};
    case DType::U8:
      return {0, 255};
    case DType::I8:
      return {-128, 127};
    case DType::I32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::I64:
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    case DType::F8E4M3:
    case DType::F8E5M2:
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64:
      break;
  }
  HEDDLE_CHECK(false, "{} is not an integer type", name(dtype));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  HEDDLE_USER_CHECK(!isFloat8(a) && !isFloat8(b), "{} and {} have no common type: cast one of them",
                    name(a), name(b));
  if (b < a) std::swap(a, b);
  if (a == DType::U8 && b == DType::I8) return DType::I32;
  if (a == DType::F16 && b == DType::BF16) return DType::F32;
  return b;
}

double toDouble(const Scalar& scalar) {
  if (const bool* b = std::get_if<bool>(&scalar)) return *b ? 1.0 : 0.0;
  if (const int64_t* i = std::get_if<int64_t>(&scalar)) return static_cast<double>(*i);
  return std::get<double>(scalar);
}

int64_t toInt(const Scalar& scalar) {
  if (const bool* b = std::get_if<bool>(&scalar)) return *b ? 1 : 0;
  if (const int64_t* i = std::get_if<int64_t>(&scalar)) return *i;
  return intFrom(DType::I64, std::get<double>(scalar));
}

int64_t intFrom(DType dtype, double value) {
  // In C++ the cast is undefined for NaN and for numbers out of range. As a double, the largest i64
  // rounds up to 2^63, which is out of range. The comparison is therefore `>=`.
  const IntRange range = rangeOf(dtype);
  if (std::isnan(value)) return 0;
  if (value >= static_cast<double>(range.highest)) return range.highest;
  if (value <= static_cast<double>(range.lowest)) return range.lowest;
  return static_cast<int64_t>(value);
}

int64_t intFrom(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::Bool:
      return value != 0;
    case DType::U8:
      return static_cast<uint8_t>(value);
    case DType::I8:
      return static_cast<int8_t>(value);
    case DType::I32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

Scalar loadElement(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::Bool:
      return read<uint8_t>(data, index) != 0;
    case DType::U8:
      return int64_t{read<uint8_t>(data, index)};
    case DType::I8:
      return int64_t{read<int8_t>(data, index)};
    case DType::I32:
      return int64_t{read<int32_t>(data, index)};
    case DType::I64:
      return read<int64_t>(data, index);
    case DType::F8E4M3:
      return double{floatFromF8e4m3(read<uint8_t>(data, index))};
    case DType::F8E5M2:
      return double{floatFromF8e5m2(read<uint8_t>(data, index))};
    case DType::F16:
      return double{floatFromF16(read<uint16_t>(data, index))};
    case DType::BF16:
      return double{floatFromBf16(read<uint16_t>(data, index))};
    case DType::F32:
      return double{read<float>(data, index)};
    case DType::F64:
      return read<double>(data, index);
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

void storeElement(void* data, DType dtype, int64_t index, const Scalar& value) {
  switch (dtype) {
    case DType::Bool:
      return write<uint8_t>(data, index, isTrue(value) ? 1 : 0);
    case DType::U8:
      return write(data, index, static_cast<uint8_t>(intOf(dtype, value)));
    case DType::I8:
      return write(data, index, static_cast<int8_t>(intOf(dtype, value)));
    case DType::I32:
      return write(data, index, static_cast<int32_t>(intOf(dtype, value)));
    case DType::I64:
      return write(data, index, intOf(dtype, value));
    case DType::F8E4M3:
      return write(data, index, f8e4m3FromFloat(floatOf(value)));
    case DType::F8E5M2:
      return write(data, index, f8e5m2FromFloat(floatOf(value)));
    case DType::F16:
      return write(data, index, f16FromFloat(floatOf(value)));
    case DType::BF16:
      return write(data, index, bf16FromFloat(floatOf(value)));
    case DType::F32:
      return write(data, index, floatOf(value));
    case DType::F64:
      return write(data, index, toDouble(value));
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

Scalar roundTo(DType dtype, const Scalar& value) {
  if (dtype == DType::F64) return toDouble(value);
  uint64_t element = 0;
  storeElement(&element, dtype, 0, value);
  return loadElement(&element, dtype, 0);
}

}  // namespace heddle
