#include "ir/types/exact_scalar.h"

#include <cmath>

#include "ir/base/check.h"

namespace heddle {
namespace {

std::string whyNotFloat(DType dtype, const Scalar& value) {
  if (std::holds_alternative<bool>(value)) return "is a bool";
  const double rounded = toDouble(roundTo(dtype, value));
  if (std::holds_alternative<double>(value)) {
    const bool fits = std::isfinite(rounded) || !std::isfinite(std::get<double>(value));
    return fits ? "" : fmt::format("is the number {}, which is too large", std::get<double>(value));
  }
  const int64_t integer = std::get<int64_t>(value);
  const bool is_exact = std::fabs(rounded) < 0x1p63 && static_cast<int64_t>(rounded) == integer;
  return is_exact ? "" : fmt::format("is the integer {}, which the type cannot hold", integer);
}

}  // namespace

std::string whyNotScalar(DType dtype, const Scalar& value) {
  if (isFloat(dtype)) return whyNotFloat(dtype, value);
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("is the floating-point number {}", *number);
  }
  const bool is_bool = std::holds_alternative<bool>(value);
  if (dtype == DType::Bool) {
    return is_bool ? "" : fmt::format("is the integer {}", std::get<int64_t>(value));
  }
  if (is_bool) return "is a bool";
  const int64_t integer = std::get<int64_t>(value);
  const IntRange range = rangeOf(dtype);
  if (integer >= range.lowest && integer <= range.highest) return "";
  return fmt::format("is the integer {}, and the type holds {} to {}", integer, range.lowest,
                     range.highest);
}

}  // namespace heddle
