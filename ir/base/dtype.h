#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace heddle {

// Element types. A value has the bits of its type whether or not it was stored between two ops:
//  - F16 and BF16 are computed in f32, and each result is rounded to nearest even;
//  - U8, I8 and I32 are computed in i64, and each result wraps to its type;
//  - F8E4M3 (no infinities: 448 is the largest) and F8E5M2 take part in casts, moves, products.
enum class DType : uint8_t { Bool, U8, I8, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64 };

inline constexpr DType kAllDTypes[] = {DType::Bool, DType::U8,     DType::I8,     DType::I32,
                                       DType::I64,  DType::F8E4M3, DType::F8E5M2, DType::F16,
                                       DType::BF16, DType::F32,    DType::F64};

// Bytes of one element; Bool takes one byte holding 0 or 1.
int64_t sizeOf(DType dtype);

// The text form: bool, u8, i8, i32, i64, f8e4m3, f8e5m2, f16, bf16, f32, f64.
std::string_view name(DType dtype);
std::optional<DType> dtypeFromName(std::string_view text);

bool isFloat(DType dtype);
bool isFloat8(DType dtype);

// The values of an integer type; bool holds 0 and 1.
struct IntRange {
  int64_t lowest;
  int64_t highest;
};
IntRange rangeOf(DType dtype);

// PyTorch's promotion among tensors, bool < u8, i8 < i32 < i64 < f16, bf16 < f32 < f64: an integer
// with a float gives the float, f16 with bf16 gives f32. Not PyTorch's: u8 with i8 gives i32, for
// there is no i16. UserError for an f8 type with another type: they meet nothing uncast.
DType promote(DType a, DType b);

// Round to nearest even; NaN stays a quiet NaN. What is too large becomes inf, in F8E4M3 448.
uint16_t bf16FromFloat(float value);
float floatFromBf16(uint16_t bits);
uint16_t f16FromFloat(float value);
float floatFromF16(uint16_t bits);
uint8_t f8e4m3FromFloat(float value);
float floatFromF8e4m3(uint8_t bits);
uint8_t f8e5m2FromFloat(float value);
float floatFromF8e5m2(uint8_t bits);

// A host scalar: what a scalar value of a fusion holds at run time.
using Scalar = std::variant<bool, int64_t, double>;

double toDouble(const Scalar& scalar);
int64_t toInt(const Scalar& scalar);  // a double truncates toward zero and saturates; NaN is 0

// What an integer type holds of a value: a double truncates toward zero and saturates at the ends
// of the type, NaN is 0; an integer wraps.
int64_t intFrom(DType dtype, double value);
int64_t intFrom(DType dtype, int64_t value);

// Reads / writes element `index` of a dense array of `dtype`. Integers and bools travel as
// int64_t, floats as double (exact for every listed type).
Scalar loadElement(const void* data, DType dtype, int64_t index);
void storeElement(void* data, DType dtype, int64_t index, const Scalar& value);

// `value` rounded to what `dtype` can hold: floats to nearest even (what is narrower than f32 by
// way of f32, as PyTorch does), bool: != 0, integers: intFrom().
Scalar roundTo(DType dtype, const Scalar& value);

}  // namespace heddle
