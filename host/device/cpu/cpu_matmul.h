#pragma once

#include "host/device/cpu/tile_pool.h"
#include "host/device/matmul_shape.h"

namespace heddle::host {

// A matrix product on the CPU. An object never changes, so several threads may call run().
// - OpenBLAS computes the matrix products of floats: f64 in f64, all others in f32. Blocks of half
//   and f8 types are first converted to f32.
// - Integers are computed in 64 bits and wrap when they are stored. An element of a bool result is
//   the OR of ANDs.
// - The bias and the activation are applied to an accumulated block before it is rounded. Integers
//   wrap before the activation is applied.
// - Operands whose strides OpenBLAS cannot read are packed block by block.
// - If k is 0, every sum is empty and equals 0.
// The threads of OpenBLAS compute the products of blocks. The threads of the pool do all other
// work: they convert, pack, round, apply the activation, and multiply integers.
class CpuMatmul {
 public:
  explicit CpuMatmul(MatmulShape shape);
  // The size of the workspace for converted and packed blocks and for sums: at most 48 MiB for f32
  // sums and 96 MiB for f64 sums.
  int64_t workspaceBytes() const { return workspace_bytes_; }
  // Computes the matrix product and returns when the result is complete. Allocates no memory.
  void run(MatmulOperands operands, TilePool& pool) const;

 private:
  MatmulShape shape_;
  bool transposed_ = false;  // true: `shape_` describes c^T = b^T a^T
  int64_t workspace_bytes_ = 0;
};

// Sets the number of OpenBLAS threads of this process. Only the first call has an effect. If the
// environment variable OPENBLAS_NUM_THREADS is set, no call has an effect. Users should set this
// variable to 1 for a process that contains many ranks.
void setBlasThreadsOnce(int threads);

}  // namespace heddle::host
