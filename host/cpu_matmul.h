#pragma once

#include "host/matmul_shape.h"

namespace heddle::host {

// Computes c on the calling thread, with OpenBLAS for floats: f32 and f64 in their own type, bf16
// in f32 rounded once at the end, i64 wrapping around, bool as "or" of "and". Operands with strides
// that OpenBLAS cannot read are packed first. An empty sum (k = 0) is 0.
void cpuMatmul(const MatmulShape& shape, const void* a, const void* b, void* c);

// OpenBLAS has one setting for the whole process: the first caller decides, unless
// $OPENBLAS_NUM_THREADS is set. Processes that hold many ranks set that to 1.
void setBlasThreadsOnce(int threads);

}  // namespace heddle::host
