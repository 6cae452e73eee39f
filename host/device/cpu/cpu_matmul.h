#pragma once

#include "host/device/matmul_shape.h"

namespace heddle::host {

// Computes a matrix product and returns when it is done. Uses no workspace.
// - OpenBLAS computes floats, f32 and f64 in their own type. This function first converts blocks of
//   half and f8 types to f32.
// - Integers are computed in 64 bits and wrap when they are stored. A bool result is the OR of
//   ANDs.
// - Bias and activation are applied to an accumulated block before it is rounded. An integer wraps
//   before the activation.
// - Operands whose strides OpenBLAS cannot read are packed block by block.
// - An empty sum (k = 0) is 0.
void cpuMatmul(const MatmulShape& shape, const MatmulOperands& operands);

// Sets the number of threads of OpenBLAS for the process. Only the first call has an effect. No
// call has an effect if $OPENBLAS_NUM_THREADS is set. Set that variable to 1 for a process that
// contains many ranks.
void setBlasThreadsOnce(int threads);

}  // namespace heddle::host
