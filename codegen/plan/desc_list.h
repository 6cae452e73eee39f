#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/types/tensor.h"

namespace heddle::codegen {

// The descriptors of the operands of a kernel, in order. Refers to the caller's list, which must
// outlive the object. The list contains descriptors, or pointers to descriptors that lie elsewhere.
class DescList {
 public:
  DescList(const std::vector<TensorDesc>& descs)  // NOLINT: implicit, for callers with a vector
      : descs_(descs.data()), size_(descs.size()) {}
  DescList(const std::vector<const TensorDesc*>& descs)  // NOLINT: implicit, as above
      : pointers_(descs.data()), size_(descs.size()) {}
  using Pointers = boost::container::small_vector<const TensorDesc*, 4>;
  DescList(const Pointers& descs)  // NOLINT: implicit, as above
      : pointers_(descs.data()), size_(descs.size()) {}

  size_t size() const { return size_; }
  const TensorDesc& operator[](size_t i) const {
    return pointers_ != nullptr ? *pointers_[i] : descs_[i];
  }

 private:
  const TensorDesc* descs_ = nullptr;
  const TensorDesc* const* pointers_ = nullptr;
  size_t size_;
};

// What the plan of a kernel depends on, in addition to the descriptors of its operands: more sizes
// of the run, and a property of the GPU.
struct RunSizes {
  // Descriptors of generatedValues(segment) (codegen/plan/generated.h).
  std::vector<TensorDesc> generated;
  std::vector<int64_t> widths;  // values of the pad widths in Analysis::widths
  bool clusters = true;         // KernelCompiler::supportsClusters()
  bool operator==(const RunSizes&) const = default;
};

}  // namespace heddle::codegen
