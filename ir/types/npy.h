#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "ir/types/host_tensor.h"

namespace heddle {

// NumPy's .npy files, format versions 1 and 2, little endian.
//
//   bool '|b1'   u8 '|u1'   i8 '|i1'   i32 '<i4'   i64 '<i8'   f16 '<f2'   f32 '<f4'   f64 '<f8'
//   bf16 '<V2'   f8e4m3, f8e5m2 '|V1'
//
// bf16: NumPy has no such type. heddle writes raw two-byte elements ('<V2'), as NumPy does for
// arrays
//       of ml_dtypes.bfloat16, and reads '<V2', '|V2', 'V2' and the bits in '<u2'. In Python:
//       numpy.load(path).view(ml_dtypes.bfloat16), or .view("<u2") for the bits.
// f8:   NumPy has no 8-bit floats. heddle writes raw bytes ('|V1') and reads them as f8e4m3, or as
//       `wanted` if that is an f8 type; in this case it also reads the bits in '|u1'. In Python:
//       numpy.load(path).view(ml_dtypes.float8_e4m3fn), or .view("u1") for the bits.
// Fortran order: readNpy() converts such arrays to row-major.
//
// `wanted` has no other effect: the caller compares the dtype.
//
// Errors: UserError with the file and the problem: another dtype (and what to convert it to),
// truncated data, bytes after the data, a broken header.
HostTensor readNpy(const std::string& path, std::optional<DType> wanted = {});
HostTensor readNpy(std::istream& in, const std::string& name, std::optional<DType> wanted = {});

void writeNpy(const std::string& path, const HostTensor& tensor);
void writeNpy(std::ostream& out, const HostTensor& tensor);

}  // namespace heddle
