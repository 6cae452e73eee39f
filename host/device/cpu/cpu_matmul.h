#pragma once

#include "host/device/matmul_shape.h"

namespace heddle::host {

// Computes c on the calling thread, with OpenBLAS for floats: f32 and f64 in their own type, the
// half types block by block in f32, i64 wrapping around, bool as "or" of "and". Bias and activation
// are applied to the accumulated block before it is rounded. Operands with strides that OpenBLAS
// cannot read are packed block by block. An empty sum (k = 0) is 0. Uses no workspace.
void cpuMatmul(const MatmulShape& shape, const MatmulOperands& operands);

// OpenBLAS has one setting for the whole process: the first caller decides, unless
// $OPENBLAS_NUM_THREADS is set. Processes that hold many ranks set that to 1.
void setBlasThreadsOnce(int threads);

}  // namespace heddle::host
