#include "host/device/cuda/matmul/prepared_cuda_matmul.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "host/device/cuda/kernel/cuda_check.h"
#include "host/device/cuda/matmul/cuda_matmul.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr int64_t kVectorBytes = 16;  // the alignment that most algorithms need, in bytes

bool aligned(const void* address, uintptr_t mask) {
  return (reinterpret_cast<uintptr_t>(address) & mask) == 0;
}

// Returns the part of a message that names the activation. It has the names of fusions.
std::string_view activationText(Activation activation) {
  switch (activation) {
    case Activation::None:
      return "";
    case Activation::Relu:
      return ", with activation=relu";
    case Activation::GeluTanh:
      return ", with activation=gelu_tanh";
  }
  HEDDLE_CHECK(false, "activation {} is not in the enum", static_cast<int>(activation));
}

const void* offsetBy(const void* address, int64_t bytes) {
  return static_cast<const std::byte*>(address) + bytes;
}

}  // namespace

PreparedCudaMatmul::PreparedCudaMatmul(int device, cublasLtHandle_t handle, StridedCopy& copy,
                                       const codegen::KernelCompiler& compiler, MatmulLayout layout,
                                       const AlgorithmChoices& choices)
    : device_(device),
      handle_(handle),
      copy_(copy),
      compiler_(compiler),
      layout_(std::move(layout)),
      less_{{kVectorBytes, {}, {}}, {1, {}, {}}} {
  packs_ = layout_.packed_bytes > 0;
  aligned_ = bind(256, CudaMatmul::kWorkspaceBytes, choices);
  for (const Bound& bound : aligned_) {
    library_bytes_ =
        std::max(library_bytes_, static_cast<int64_t>(bound.algorithm.workspace_bytes));
  }
  const MatmulProblem& problem = layout_.problems.at(0);
  const auto mask = [](int64_t alignment) { return static_cast<uintptr_t>(alignment) - 1; };
  masks_[0] = mask(problem.a.alignment);
  masks_[1] = mask(problem.b.alignment);
  masks_[2] = problem.bias_alignment == 0 ? 0 : mask(problem.bias_alignment);
  masks_[3] = mask(problem.c.alignment);
}

// Creates the descriptors and selects algorithms. The descriptors assume alignments of at most
// `alignment` bytes.
PreparedCudaMatmul::Variant PreparedCudaMatmul::bind(int64_t alignment, size_t workspace_bytes,
                                                     const AlgorithmChoices& choices) const {
  Variant variant;
  for (const MatmulProblem& problem : layout_.problems) {
    const MatmulProblem bound = alignedTo(problem, alignment);
    LtMatmul matmul(handle_, bound);
    std::optional<LtMatmul::Algorithm> algorithm;
    const auto choice = choices.find(bound.text());
    if (choice != choices.end()) algorithm = matmul.fromText(choice->second, workspace_bytes);
    if (!algorithm) {
      const std::vector<LtMatmul::Algorithm> first = matmul.candidates(1, workspace_bytes);
      HEDDLE_USER_CHECK(!first.empty(), "cublasLtMatmulAlgoGetHeuristic: no algorithm for {}{}{}",
                        bound.sizes(), activationText(bound.activation),
                        bound.bias_alignment != 0 ? ", with a bias" : "");
      algorithm = first.front();
    }
    variant.push_back({matmul, *algorithm});
  }
  return variant;
}

// Returns the descriptors and algorithms for the alignments of these operands. Creates them if no
// earlier run needed them.
const PreparedCudaMatmul::Variant& PreparedCudaMatmul::variantFor(
    const MatmulOperands& operands) const {
  const auto fits = [&](uintptr_t most) {
    return aligned(operands.a, masks_[0] & most) && aligned(operands.b, masks_[1] & most) &&
           aligned(operands.bias, masks_[2] & most) && aligned(operands.c, masks_[3] & most);
  };
  if (fits(~uintptr_t{0})) return aligned_;
  Fallback& fallback = fits(static_cast<uintptr_t>(kVectorBytes) - 1) ? less_[0] : less_[1];
  std::call_once(fallback.once, [&] {
    fallback.variant = bind(fallback.bytes, static_cast<size_t>(library_bytes_), {});
  });
  return fallback.variant;
}

void PreparedCudaMatmul::run(const MatmulOperands& operands, Stream stream,
                             const Issue& issue) const {
  if (issue.errors != nullptr && issue.errors->failed()) return;
  const DeviceGuard guard(device_);
  const auto native = static_cast<cudaStream_t>(stream);
  if (packs_) return runPacked(operands, native);
  MatmulOperands given = operands;
  if (layout_.swapped) std::swap(given.a, given.b);
  runCalls(given, native);
}

void PreparedCudaMatmul::runCalls(const MatmulOperands& operands, cudaStream_t stream) const {
  const Variant& variant = variantFor(operands);
  for (const MatmulLayout::Call& call : layout_.calls) {
    const Bound& bound = variant[call.problem];
    bound.matmul.run(bound.algorithm,
                     {offsetBy(operands.a, call.a), offsetBy(operands.b, call.b), operands.bias,
                      static_cast<std::byte*>(operands.c) + call.c, operands.workspace},
                     stream);
  }
}

const void* PreparedCudaMatmul::packed(const Packing& packing, const void* operand,
                                       std::byte* workspace, cudaStream_t stream) const {
  if (!packing.wanted) return operand;
  copy_.run(compiler_, workspace + packing.workspace, packing.packed_strides, operand,
            packing.strides, packing.sizes, packing.element_bytes, stream);
  return workspace + packing.workspace;
}

// Packs operands into the workspace, computes, and copies a packed result to c. The workspace
// contains the packed operands, followed by the workspace of cuBLASLt.
void PreparedCudaMatmul::runPacked(MatmulOperands operands, cudaStream_t stream) const {
  auto* workspace = static_cast<std::byte*>(operands.workspace);
  if (layout_.swapped) std::swap(operands.a, operands.b);
  MatmulOperands dense = operands;
  if (layout_.zeros) {
    const auto zero = [&](const Packing& packing) {
      HEDDLE_CUDA(cudaMemsetAsync, workspace + packing.workspace, 0,
                  static_cast<size_t>(packing.bytes), stream);
      return workspace + packing.workspace;
    };
    dense.a = zero(layout_.a);
    dense.b = zero(layout_.b);
  } else {
    dense.a = packed(layout_.a, operands.a, workspace, stream);
    dense.b = packed(layout_.b, operands.b, workspace, stream);
  }
  dense.bias = packed(layout_.bias, operands.bias, workspace, stream);
  if (layout_.c.wanted) dense.c = workspace + layout_.c.workspace;
  dense.workspace = workspace + layout_.packed_bytes;
  runCalls(dense, stream);
  if (!layout_.c.wanted) return;
  copy_.run(compiler_, operands.c, layout_.c.strides, dense.c, layout_.c.packed_strides,
            layout_.c.sizes, layout_.c.element_bytes, stream);
}

}  // namespace heddle::host
