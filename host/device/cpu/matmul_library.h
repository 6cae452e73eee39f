#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/device/cpu/cpu_device.h"
#include "host/device/cpu/matmul_operand.h"
#include "ir/base/dtype.h"

namespace heddle::host::matmul {

// A matrix product c[m, n] = a[m, k] x b[k, n] of bf16 matrices, with sums in f32. c is row-major.
struct Bf16Matmul {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  MatrixLayout a;
  MatrixLayout b;
  DType c_dtype = DType::BF16;  // or F32
  int64_t ldc = 1;
};

// A Bf16Matmul that oneDNN has prepared. The object never changes, so several threads may call
// run().
class PreparedBf16Matmul {
 public:
  virtual ~PreparedBf16Matmul() = default;
  virtual int64_t workspaceBytes() const = 0;
  // Computes c on the calling thread only. `workspace` must be aligned to 64 bytes.
  virtual void run(const void* a, const void* b, void* c, void* workspace) const = 0;
};

// The entry points of the module libheddle_onednn. The module exports `extern "C" const
// MatmulLibrary* heddleOneDnnModule()`. All functions compute on the calling thread only, and give
// the same bits in every call with the same operands, sizes and layouts.
struct MatmulLibrary {
  // Returns the version of oneDNN, such as 2.6.3.
  std::string (*version)();
  // Computes c = a x b, or c += a x b if `adds` is true. c is row-major.
  void (*multiply)(const Operand<float>& a, const Operand<float>& b, bool adds, float* c,
                   int64_t ldc, int64_t m, int64_t n, int64_t k);
  // Prepares a matrix product. Returns nullptr if oneDNN has no fast implementation for this CPU or
  // for these layouts.
  std::unique_ptr<const PreparedBf16Matmul> (*prepare)(const Bf16Matmul& product);
};

// Returns the entry points of the module, or nullptr with the reason in `why`.
const MatmulLibrary* findOneDnn(std::string& why);

// Returns oneDNN, or nullptr if OpenBLAS is to compute all floats. CpuMatmulLibrary
// (host/device/cpu/cpu_device.h) describes `Any`. Throws UserError if oneDNN is requested by
// `wanted`, or by HEDDLE_CPU_MATMUL with `Any`, and its module cannot be loaded. With `Any`, also
// throws UserError if the variable has a value other than onednn, openblas or the empty text.
const MatmulLibrary* matmulLibrary(CpuMatmulLibrary wanted);

}  // namespace heddle::host::matmul
