#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "codegen/compile/child_process.h"
#include "codegen/compile/cpp_compiler.h"
#include "codegen/compile/image_cache.h"
#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel.h"
#include "codegen/kernel_choice.h"
#include "codegen/plan/generated.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle::codegen::testing {

inline std::vector<Size> symbols(const std::string& names) {
  std::vector<Size> sizes;
  for (char c : names) sizes.push_back(Size::symbol(std::string(1, c)));
  return sizes;
}

// Holds a tensor in host memory with any strides. `shift` is the number of bytes before its first
// element.
struct Buffer {
  TensorDesc desc;
  std::vector<char> bytes;
  size_t shift = 0;

  Buffer(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides = {},
         size_t shift_bytes = 0)
      : desc(denseDesc(dtype, std::move(sizes))), shift(shift_bytes) {
    if (!strides.empty()) desc.strides = std::move(strides);
    bytes.resize(shift + static_cast<size_t>(desc.allocBytes()) + 16);
  }
  void* data() { return bytes.data() + shift; }
  int32_t alignment() { return alignmentOf(reinterpret_cast<uintptr_t>(data())); }
  int64_t offsetOf(const std::vector<int64_t>& index) const {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * desc.strides[i];
    return offset;
  }
  double at(const std::vector<int64_t>& index) {
    return toDouble(loadElement(data(), desc.dtype, offsetOf(index)));
  }
  void set(const std::vector<int64_t>& index, double value) {
    Scalar s = value;
    if (!isFloat(desc.dtype)) s = static_cast<int64_t>(value);
    storeElement(data(), desc.dtype, offsetOf(index), s);
  }
  void forEach(const std::function<void(const std::vector<int64_t>&)>& visit) const {
    if (desc.numel() == 0) return;
    std::vector<int64_t> index(desc.rank(), 0);
    for (;;) {
      visit(index);
      size_t axis = index.size();
      while (axis > 0 && ++index[axis - 1] == desc.sizes[axis - 1]) index[--axis] = 0;
      if (axis == 0) return;
    }
  }
  // Fills with multiples of 1/8 in [-4, 4), which are exact in every float type of 16 bits or more.
  Buffer& fill(unsigned seed) {
    unsigned state = seed * 2654435761u + 12345u;
    forEach([&](const std::vector<int64_t>& index) {
      state = state * 1664525u + 1013904223u;
      double value = static_cast<double>((state >> 20) % 64) / 8 - 4;
      set(index, desc.dtype == DType::Bool ? (value < 0 ? 1 : 0)
                 : desc.dtype == DType::U8 ? static_cast<double>((state >> 20) % 17)
                 : !isFloat(desc.dtype)    ? static_cast<double>((state >> 20) % 17) - 8
                                           : value);
    });
    return *this;
  }
};

// The host's compiler, and the cache of compiled kernels that `heddle run` uses too. A kernel is
// thus compiled only once, also if the tests run again. All tests of the executable share one
// object, shared().
class CpuKernels {
 public:
  static CpuKernels& shared() {
    static CpuKernels kernels;
    return kernels;
  }

  const KernelCompiler* compiler() const { return compiler_.get(); }
  const std::string& why() const { return why_; }

  // Plans, compiles and runs a kernel. Runs the tiles of the kernel in reverse order, because the
  // result must not depend on the order.
  KernelPlan run(const Fusion& segment, const std::vector<Buffer*>& inputs,
                 const std::vector<Buffer*>& outputs, const std::vector<Scalar>& scalars = {},
                 const KernelChoice* choice = nullptr) {
    std::vector<TensorDesc> in;
    std::vector<TensorDesc> out;
    std::vector<void*> pointers;
    for (Buffer* b : inputs) {
      in.push_back(b == nullptr ? TensorDesc{} : b->desc);
      pointers.push_back(b == nullptr ? nullptr : b->data());
    }
    for (Buffer* b : outputs) {
      out.push_back(b->desc);
      pointers.push_back(b->data());
    }
    KernelPlan plan = planKernel(segment, in, out, Target::Cpp, {},
                                 unshardedSizes(segment, in, out), nullptr, nullptr, choice);
    std::vector<char> workspace(static_cast<size_t>(plan.workspace_bytes) + 16, '\x7f');
    for (LaunchStage stage : plan.stages) {
      for (const LaunchStage::PointerPatch& p : stage.pointers) {
        void* pointer = p.operand == LaunchStage::kWorkspace
                            ? workspace.data() + p.workspace_offset
                            : pointers.at(static_cast<size_t>(p.operand));
        std::memcpy(stage.args.data() + p.offset, &pointer, sizeof(pointer));
      }
      for (const LaunchStage::ScalarPatch& s : stage.scalars) {
        storeElement(stage.args.data() + s.offset, s.dtype, 0,
                     scalars.at(static_cast<size_t>(s.operand)));
      }
      auto* entry = find(plan.source, stage.entry);
      for (int64_t tile = stage.grid; tile-- > 0;) entry(stage.args.data(), tile, tile + 1);
    }
    return plan;
  }

 private:
  using Entry = void (*)(const void*, int64_t, int64_t);

  CpuKernels() : compiler_(makeCppCompiler(why_)) {}

  Entry find(const KernelSource& source, const std::string& entry) {
    auto image = cache_.get(source, *compiler_);
    void* symbol = dlsym(image->library.get(), entry.c_str());
    HEDDLE_CHECK(symbol != nullptr, "dlsym: {}", dlerror());
    return reinterpret_cast<Entry>(symbol);
  }

  std::string why_;
  ImageCache cache_;
  std::unique_ptr<KernelCompiler> compiler_;
};

}  // namespace heddle::codegen::testing
