#pragma once

#include <iosfwd>
#include <string>

#include "ir/host_tensor.h"

namespace heddle {

// NumPy's .npy files, format versions 1 and 2, little endian.
//
//   bool '|b1'   i64 '<i8'   f32 '<f4'   f64 '<f8'   bf16 '<V2'
//
// NumPy has no bf16: it is written as raw two-byte elements ('<V2', which is what an array of
// ml_dtypes.bfloat16 saves as) and read from '<V2', '|V2' or the bits in '<u2'. In Python:
// numpy.load(path).view(ml_dtypes.bfloat16), or .view("<u2") for the bits. Arrays in Fortran order
// are read too, and come out row-major.
//
// UserError names the file and what is wrong with it: other dtypes (with what to convert to),
// truncated data, bytes after the data, a header that is no .npy header.
HostTensor readNpy(const std::string& path);
HostTensor readNpy(std::istream& in, const std::string& name);

void writeNpy(const std::string& path, const HostTensor& tensor);
void writeNpy(std::ostream& out, const HostTensor& tensor);

}  // namespace heddle
