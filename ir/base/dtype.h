#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace heddle {

// Element types. heddle rounds or wraps the result of every op to its dtype, even if a kernel keeps
// the result in registers. Exception: an attention that cuDNN computes is rounded in other places.
// Rules for some types:
//  - F16 and BF16: heddle computes in f32 and rounds each result to nearest even.
//  - U8, I8 and I32: heddle computes in i64, and each result wraps to its type.
//  - F8E4M3 and F8E5M2: only casts, data movement and matrix products accept them. F8E4M3 has no
//    infinities; its largest number is 448.
enum class DType : uint8_t { Bool, U8, I8, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64 };

inline constexpr DType kAllDTypes[] = {DType::Bool, DType::U8,     DType::I8,     DType::I32,
                                       DType::I64,  DType::F8E4M3, DType::F8E5M2, DType::F16,
                                       DType::BF16, DType::F32,    DType::F64};

// Returns the size of one element in bytes. A Bool takes one byte, which holds 0 or 1.
int64_t sizeOf(DType dtype);

// These functions convert between a type and its text form. The text forms are bool, u8, i8, i32,
// i64, f8e4m3, f8e5m2, f16, bf16, f32 and f64. dtypeFromName() returns nullopt for every other
// text.
std::string_view name(DType dtype);
std::optional<DType> dtypeFromName(std::string_view text);

bool isFloat(DType dtype);
bool isFloat8(DType dtype);

// The lowest and highest value of an integer type, or 0 and 1 for bool. rangeOf() throws
// InternalError for a float type.
struct IntRange {
  int64_t lowest;
  int64_t highest;
};
IntRange rangeOf(DType dtype);

// Returns the common type of two tensors. The rules are PyTorch's, except the rule for u8 with i8:
//  - The result is the later type in the order bool, u8 or i8, i32, i64, f16 or bf16, f32, f64.
//  - f16 with bf16 gives f32.
//  - u8 with i8 gives i32. PyTorch gives i16, which heddle does not have.
//  - An f8 type with a different type throws UserError. The caller must cast one operand.
DType promote(DType a, DType b);

// These functions convert between f32 and the bits of a narrower float type. Conversions from f32
// round to nearest even and turn every NaN into a quiet NaN. A number that is too large becomes
// infinity, or 448 in F8E4M3.
uint16_t bf16FromFloat(float value);
float floatFromBf16(uint16_t bits);
uint16_t f16FromFloat(float value);
float floatFromF16(uint16_t bits);
uint8_t f8e4m3FromFloat(float value);
float floatFromF8e4m3(uint8_t bits);
uint8_t f8e5m2FromFloat(float value);
float floatFromF8e5m2(uint8_t bits);

// One number in host memory: the value of a scalar (a value of a fusion that is computed on the
// host), or one element of a tensor.
using Scalar = std::variant<bool, int64_t, double>;

double toDouble(const Scalar& scalar);
// Truncates a double toward zero and saturates it at the ends of int64_t. NaN gives 0.
int64_t toInt(const Scalar& scalar);

// These functions convert a value to an integer type or bool:
//  - A double is truncated toward zero and saturates at the ends of the type. NaN gives 0.
//  - An integer wraps. For bool, 0 gives 0 and every other integer gives 1.
int64_t intFrom(DType dtype, double value);
int64_t intFrom(DType dtype, int64_t value);

// These functions read and write element `index` of a dense array of `dtype`. loadElement() returns
// a bool for Bool, an int64_t for integers and a double for floats. The returned value is exact for
// every type. storeElement() rounds the value like roundTo().
Scalar loadElement(const void* data, DType dtype, int64_t index);
void storeElement(void* data, DType dtype, int64_t index, const Scalar& value);

// Rounds `value` to a number of `dtype`:
//  - floats: rounds to nearest even. For a type narrower than f32 it rounds to f32 first, as
//    PyTorch does.
//  - bool: gives true if the value is not 0.
//  - integers: converts like intFrom().
Scalar roundTo(DType dtype, const Scalar& value);

}  // namespace heddle
