#pragma once

#include "host/device/matmul_shape.h"

namespace heddle::host {

// Computes a matrix product and returns when the result is complete. Uses no workspace.
// - OpenBLAS computes the matrix products of floats: f64 in f64, all others in f32. Blocks of half
//   and f8 types are first converted to f32.
// - Integers are computed in 64 bits and wrap when they are stored. An element of a bool result is
//   the OR of ANDs.
// - The bias and the activation are applied to an accumulated block before it is rounded. Integers
//   wrap before the activation is applied.
// - Operands whose strides OpenBLAS cannot read are packed block by block.
// - If k is 0, every sum is empty and equals 0.
void cpuMatmul(const MatmulShape& shape, const MatmulOperands& operands);

// Sets the number of OpenBLAS threads of this process. Only the first call has an effect. If the
// environment variable OPENBLAS_NUM_THREADS is set, no call has an effect. Users should set this
// variable to 1 for a process that contains many ranks.
void setBlasThreadsOnce(int threads);

}  // namespace heddle::host
