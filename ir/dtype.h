#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace heddle {

// Element types. Arithmetic on BF16 is done in f32 and each result is rounded to nearest even, so
// a value has the same bits whether or not it was stored between two ops.
enum class DType : uint8_t { Bool, I64, BF16, F32, F64 };

inline constexpr DType kAllDTypes[] = {DType::Bool, DType::I64, DType::BF16, DType::F32,
                                       DType::F64};

// Bytes of one element; Bool takes one byte holding 0 or 1.
int64_t sizeOf(DType dtype);

// The text form: bool, i64, bf16, f32, f64.
std::string_view name(DType dtype);
std::optional<DType> dtypeFromName(std::string_view text);

bool isFloat(DType dtype);

// PyTorch's promotion among tensors of the listed types: bool < i64 < bf16 < f32 < f64.
DType promote(DType a, DType b);

// Round to nearest even; NaN stays a quiet NaN, overflow becomes inf.
uint16_t bf16FromFloat(float value);
float floatFromBf16(uint16_t bits);

// A host scalar: what a scalar value of a fusion holds at run time.
using Scalar = std::variant<bool, int64_t, double>;

double toDouble(const Scalar& scalar);
int64_t toInt(const Scalar& scalar);  // a double truncates toward zero and saturates; NaN is 0

// Reads / writes element `index` of a dense array of `dtype`. Integers and bools travel as
// int64_t, floats as double (exact for every listed type).
Scalar loadElement(const void* data, DType dtype, int64_t index);
void storeElement(void* data, DType dtype, int64_t index, const Scalar& value);

// `value` rounded to what `dtype` can hold (f32/bf16: nearest even; bool: != 0; i64: truncation).
Scalar roundTo(DType dtype, const Scalar& value);

}  // namespace heddle
