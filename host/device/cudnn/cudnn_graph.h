#pragma once

#include <cudnn_graph.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "host/device/cudnn/cudnn_check.h"

namespace heddle::host::cudnn {

using Descriptor = std::unique_ptr<void, cudnnStatus_t (*)(cudnnBackendDescriptor_t)>;

Descriptor makeDescriptor(cudnnBackendDescriptorType_t type);

template <class T>
void setAttributes(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, const std::vector<T>& values) {
  check(cudnnBackendSetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()),
                                 values.data()),
        "cudnnBackendSetAttribute");
}

// Operations on tensors of four axes, which cuDNN compiles to one kernel or few. Made on one
// thread, op by op; the descriptors live as long as the graph.
class Graph {
 public:
  using Sizes = std::vector<int64_t>;
  struct Tensor {
    cudnnBackendDescriptor_t descriptor = nullptr;
    int64_t id = 0;  // under which execute() is given its memory
  };

  // In memory aligned to 16 bytes; strides in elements.
  Tensor tensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);
  Tensor number();                                         // f32 in host memory
  Tensor inner(cudnnDataType_t type, const Sizes& sizes);  // in no memory, row-major
  Tensor inner(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);

  void product(Tensor a, Tensor b, Tensor result);
  // `operands`: one to three. `axis`: of an index.
  void pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Tensor> operands, Tensor result,
                 int64_t axis = -1);
  void reduction(cudnnReduceTensorOp_t op, Tensor operand, Tensor result);
  // The same elements with the sizes and strides of the result: a transposition.
  void reshape(Tensor operand, Tensor result);

  // Settles how it is computed: the first of the heuristic's proposals that can be. UserError when
  // there is none. Afterwards nothing is added.
  void plan(cudnnHandle_t handle);
  int64_t workspaceBytes() const { return workspace_bytes_; }

  struct Binding {
    int64_t id;
    void* memory;
  };
  // On the stream of the handle.
  void execute(cudnnHandle_t handle, const std::vector<Binding>& bindings, void* workspace) const;

 private:
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type);
  Tensor addTensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides, bool in_memory,
                   bool by_value);

  std::vector<Descriptor> descriptors_;
  std::vector<cudnnBackendDescriptor_t> ops_;
  cudnnBackendDescriptor_t plan_ = nullptr;
  int64_t workspace_bytes_ = 0;
  int64_t ids_ = 0;
};

}  // namespace heddle::host::cudnn
