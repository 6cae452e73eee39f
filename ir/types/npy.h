#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "ir/types/host_tensor.h"

namespace heddle {

// Read and write NumPy's .npy files in little-endian byte order. readNpy() accepts the format
// versions 1 and 2, and writeNpy() writes version 1. The element types are:
//
//   bool '|b1'   u8 '|u1'   i8 '|i1'   i32 '<i4'   i64 '<i8'   f16 '<f2'   f32 '<f4'   f64 '<f8'
//   bf16 '<V2'   f8e4m3, f8e5m2 '|V1'
//
// bf16: NumPy has no bf16 type. heddle writes raw two-byte elements ('<V2'), as NumPy does for
//       arrays of ml_dtypes.bfloat16. It reads '<V2', '|V2', 'V2' and '<u2' as the bits of bf16.
//       Python reads the file with numpy.load(path).view(ml_dtypes.bfloat16), or .view("<u2") for
//       the bits.
// f8:   NumPy has no 8-bit floats. heddle writes raw bytes ('|V1'). If `wanted` is an f8 type,
//       heddle reads raw bytes and '|u1' as the bits of this type. Otherwise it reads raw bytes as
//       f8e4m3. Python reads the file with numpy.load(path).view(ml_dtypes.float8_e4m3fn), or
//       .view("u1") for the bits.
// Fortran order: readNpy() converts arrays in Fortran order to row-major order.
//
// `wanted` is the dtype that the caller expects. It only affects how '|V1' and '|u1' are read. The
// result may have a different dtype, so the caller must check it.
//
// Errors: readNpy() throws UserError with the file and the problem. Examples of problems are a
// dtype that heddle lacks (the message lists the accepted dtypes), truncated data, bytes after the
// data, and a malformed header. writeNpy() throws UserError if the header would be too long. The
// functions with a path also throw UserError if the file cannot be opened or written.
HostTensor readNpy(const std::string& path, std::optional<DType> wanted = {});
HostTensor readNpy(std::istream& in, const std::string& name, std::optional<DType> wanted = {});

void writeNpy(const std::string& path, const HostTensor& tensor);
void writeNpy(std::ostream& out, const HostTensor& tensor);

}  // namespace heddle
