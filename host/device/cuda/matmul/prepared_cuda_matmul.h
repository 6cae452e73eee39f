#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "host/device/cuda/kernel/strided_copy.h"
#include "host/device/cuda/matmul/cublaslt_matmul.h"
#include "host/device/cuda/matmul/matmul_layout.h"

namespace heddle::host {

// A matrix product with its descriptors and algorithms. The constructor creates them for the
// alignments in the layout, which follow from MatmulSpec::alignment. If an address in run() is less
// aligned, run() uses descriptors and algorithms for a smaller alignment. The first run that needs
// them creates them, and takes the first algorithm that the heuristic of cuBLASLt proposes.
class PreparedCudaMatmul : public PreparedMatmul {
 public:
  // Throws UserError if cuBLASLt has no algorithm for this matrix product. `handle`, `copy` and
  // `compiler` must outlive this object.
  PreparedCudaMatmul(int device, cublasLtHandle_t handle, StridedCopy& copy,
                     const codegen::KernelCompiler& compiler, MatmulLayout layout,
                     const AlgorithmChoices& choices);

  int64_t workspaceBytes() const override { return layout_.packed_bytes + library_bytes_; }
  void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const override;

 private:
  // The descriptors and the algorithm of one call of cublasLtMatmul.
  struct Bound {
    LtMatmul matmul;
    LtMatmul::Algorithm algorithm;
  };
  // One element per element of MatmulLayout::problems.
  using Variant = std::deque<Bound>;
  // The descriptors for smaller alignments. The first run that needs them creates them.
  struct Fallback {
    int64_t bytes;  // every address of the operands is a multiple of this number
    std::once_flag once;
    Variant variant;
  };

  Variant bind(int64_t alignment, size_t workspace_bytes, const AlgorithmChoices& choices) const;
  const Variant& variantFor(const MatmulOperands& operands) const;
  void runCalls(const MatmulOperands& operands, cudaStream_t stream) const;
  void runPacked(MatmulOperands operands, cudaStream_t stream) const;
  const void* packed(const Packing& packing, const void* operand, std::byte* workspace,
                     cudaStream_t stream) const;

  int device_;
  cublasLtHandle_t handle_;
  StridedCopy& copy_;
  const codegen::KernelCompiler& compiler_;
  MatmulLayout layout_;
  int64_t library_bytes_ = 0;
  bool packs_ = false;
  uintptr_t masks_[4];        // for a, b, bias and c: the address bits that are 0 if the operand is
                              // aligned as expected
  Variant aligned_;           // for operands that are aligned as expected
  mutable Fallback less_[2];  // for operands with 16-byte alignment, and with any alignment
};

}  // namespace heddle::host
