#include "ir/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "ir/error.h"

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

}  // namespace

int64_t sizeOf(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return 1;
    case DType::BF16:
      return 2;
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
    case DType::I64:
      return "i64";
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

bool isFloat(DType dtype) {
  return dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}

// The enum is declared in promotion order.
DType promote(DType a, DType b) { return a < b ? b : a; }

uint16_t bf16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x0040);
  const uint32_t rounding = 0x7FFF + ((bits >> 16) & 1);
  return static_cast<uint16_t>((bits + rounding) >> 16);
}

float floatFromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

double toDouble(const Scalar& scalar) {
  if (const bool* b = std::get_if<bool>(&scalar)) return *b ? 1.0 : 0.0;
  if (const int64_t* i = std::get_if<int64_t>(&scalar)) return static_cast<double>(*i);
  return std::get<double>(scalar);
}

int64_t toInt(const Scalar& scalar) {
  if (const bool* b = std::get_if<bool>(&scalar)) return *b ? 1 : 0;
  if (const int64_t* i = std::get_if<int64_t>(&scalar)) return *i;
  // Out of range and NaN are undefined in C++; saturate, NaN gives 0.
  const double value = std::get<double>(scalar);
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value < -9223372036854775808.0) return INT64_MIN;
  return static_cast<int64_t>(value);
}

Scalar loadElement(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::Bool:
      return read<uint8_t>(data, index) != 0;
    case DType::I64:
      return read<int64_t>(data, index);
    case DType::BF16:
      return static_cast<double>(floatFromBf16(read<uint16_t>(data, index)));
    case DType::F32:
      return static_cast<double>(read<float>(data, index));
    case DType::F64:
      return read<double>(data, index);
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

void storeElement(void* data, DType dtype, int64_t index, const Scalar& value) {
  switch (dtype) {
    case DType::Bool:
      return write<uint8_t>(data, index, isTrue(value) ? 1 : 0);
    case DType::I64:
      return write<int64_t>(data, index, toInt(value));
    case DType::BF16:
      return write<uint16_t>(data, index, bf16FromFloat(static_cast<float>(toDouble(value))));
    case DType::F32:
      return write<float>(data, index, static_cast<float>(toDouble(value)));
    case DType::F64:
      return write<double>(data, index, toDouble(value));
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

Scalar roundTo(DType dtype, const Scalar& value) {
  switch (dtype) {
    case DType::Bool:
      return isTrue(value);
    case DType::I64:
      return toInt(value);
    case DType::BF16:
      return static_cast<double>(floatFromBf16(bf16FromFloat(static_cast<float>(toDouble(value)))));
    case DType::F32:
      return static_cast<double>(static_cast<float>(toDouble(value)));
    case DType::F64:
      return toDouble(value);
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(dtype));
}

}  // namespace heddle
