#pragma once

#include <memory>
#include <string>

#include "host/device/cpu/matmul_library.h"
#include "host/device/cpu/part_matmul.h"
#include "host/device/cpu/tile_pool.h"
#include "host/device/matmul_shape.h"

namespace heddle::host {

// A matrix product on the CPU. A CpuMatmul never changes, so several threads may call run().
// - With oneDNN (`library` of the constructor), oneDNN computes all floats except f64. The threads
//   of the pool call oneDNN for parts of the result. oneDNN reads operands of f32 and bf16 in place
//   if it can (host/device/cpu/part_matmul.h). All other operands are first copied to the workspace
//   as f32, one block of the matrix at a time.
// - OpenBLAS computes f64. Without oneDNN, it also computes all other floats. OpenBLAS multiplies
//   f64 in f64 and other floats in f32, with its own threads. Operands that OpenBLAS cannot read in
//   place are first copied to the workspace as f64 or f32, one block at a time.
// - Integers are computed in 64 bits and wrap when they are stored. An element of a bool result is
//   the OR of ANDs.
// - The bias and the activation are applied to the sums before the sums are rounded. Integers wrap
//   before the activation is applied.
// - If k is 0, every sum is empty and equals 0.
// The threads of the pool do all work outside of the libraries: they convert, copy, round, apply
// bias and activation, and multiply integers.
class CpuMatmul {
 public:
  // `library` is oneDNN, or nullptr if OpenBLAS computes all floats. `threads` is the number of
  // threads of the pool that is passed to run().
  CpuMatmul(MatmulShape shape, const matmul::MatmulLibrary* library, int threads);
  CpuMatmul(const CpuMatmul&) = delete;  // `parts_` refers to `shape_`
  CpuMatmul& operator=(const CpuMatmul&) = delete;
  // Returns the size of the workspace, which holds the copied blocks and sums: at most 96 MiB if
  // the sums have f64, and at most 48 MiB otherwise. If oneDNN reads a and b in place: at most 4
  // MiB per thread for sums, and the scratch memory that oneDNN needs per thread.
  int64_t workspaceBytes() const { return workspace_bytes_; }
  // Computes the matrix product and returns when the result is complete. Only the libraries and
  // TilePool::run() may allocate memory in this call.
  void run(MatmulOperands operands, TilePool& pool) const;

 private:
  MatmulShape shape_;
  const matmul::MatmulLibrary* library_;
  std::unique_ptr<const matmul::PartMatmul> parts_;
  bool transposed_ = false;  // true: `shape_` describes c^T = b^T a^T
  int64_t workspace_bytes_ = 0;
};

// Returns a text such as "OpenBLAS 0.3.21".
std::string openBlasVersion();

// Sets the number of OpenBLAS threads of this process. Only the first call has an effect. If the
// environment variable OPENBLAS_NUM_THREADS is set, no call has an effect. Users should set this
// variable to 1 for a process that contains many ranks.
void setBlasThreadsOnce(int threads);

}  // namespace heddle::host
