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
// NumPy has no bf16: it is written as raw two-byte elements ('<V2', which is what an array of
// ml_dtypes.bfloat16 saves as) and read from '<V2', '|V2' or the bits in '<u2'. In Python:
// numpy.load(path).view(ml_dtypes.bfloat16), or .view("<u2") for the bits. Arrays in Fortran order
// are read too, and come out row-major.
//
// NumPy has no 8-bit floats either: they are raw bytes. '|V1' is read as f8e4m3, or as the f8 type
// that is `wanted`; then '|u1' may hold the bits too. In Python: numpy.load(path).view(
// ml_dtypes.float8_e4m3fn), or .view("u1") for the bits. `wanted` changes nothing else: the caller
// compares the dtype.
//
// UserError names the file and what is wrong with it: other dtypes (with what to convert to),
// truncated data, bytes after the data, a header that is no .npy header.
HostTensor readNpy(const std::string& path, std::optional<DType> wanted = {});
HostTensor readNpy(std::istream& in, const std::string& name, std::optional<DType> wanted = {});

void writeNpy(const std::string& path, const HostTensor& tensor);
void writeNpy(std::ostream& out, const HostTensor& tensor);

}  // namespace heddle
