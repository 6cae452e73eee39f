#pragma once

#include <cudnn_graph.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "host/device/cudnn/cudnn_check.h"

namespace heddle::host::cudnn {

// Owns a descriptor of cuDNN.
using Descriptor = std::unique_ptr<void, cudnnStatus_t (*)(cudnnBackendDescriptor_t)>;

Descriptor makeDescriptor(cudnnBackendDescriptorType_t type);

// Sets an attribute of a descriptor to a list of values.
template <class T>
void setAttributes(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, const std::vector<T>& values) {
  check(cudnnBackendSetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()),
                                 values.data()),
        "cudnnBackendSetAttribute");
}

// A graph of operations on tensors with four axes. cuDNN compiles it to one or a few kernels.
//
// Use:       add tensors and operations, call proposals() or plan() once, then execute().
// Threads:   only one thread at a time may use the graph. A thread that passes the handle must have
//            locked its mutex (SharedHandle::mutex).
class Graph {
 public:
  using Sizes = std::vector<int64_t>;
  struct Tensor {
    cudnnBackendDescriptor_t descriptor = nullptr;
    int64_t id = 0;  // identifies the tensor in Binding::id
  };

  // Adds a tensor in device memory with 16-byte alignment. Strides are in elements.
  Tensor tensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);
  // Adds an f32 number. execute() reads its value from host memory.
  Tensor number();
  // These functions add an intermediate tensor, for which the caller provides no memory. Without
  // `strides`, the tensor is row-major.
  Tensor inner(cudnnDataType_t type, const Sizes& sizes);
  Tensor inner(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);

  // Adds a matrix product.
  void matmul(Tensor a, Tensor b, Tensor result);
  // Adds a pointwise operation with one to three operands. `axis` is needed only for the mode
  // CUDNN_POINTWISE_GEN_INDEX, which computes indices along this axis.
  void pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Tensor> operands, Tensor result,
                 int64_t axis = -1);
  // Adds a reduction along the axes along which the result has one element.
  void reduction(cudnnReduceTensorOp_t op, Tensor operand, Tensor result);
  // Adds a reshape. Each element keeps its offset in memory. The sizes and strides of the result
  // determine the new index of the element. If the sizes and strides of two axes are swapped, the
  // result is the transposed operand.
  void reshape(Tensor operand, Tensor result);

  // Returns the engine configurations that cuDNN's heuristic proposes for the graph: at most 8, in
  // the order of expected speed, as lines such as "engine=2 knobs=24:7". Leaves out engines that
  // are not deterministic, because equal operands must give equal bits. cuDNN may be unable to
  // build a proposal. Do not add anything to the graph after this call.
  std::vector<std::string> proposals(cudnnHandle_t handle);
  // Builds an execution plan for the engine configuration `choice`. If cuDNN does not propose it or
  // cannot build it, builds a plan for the first proposal for which this is possible. Throws
  // UserError if there is none. Do not add anything to the graph after this call.
  void plan(cudnnHandle_t handle, const std::string& choice);
  // Returns the engine configuration for which plan() has built a plan.
  const std::string& engine() const { return engine_; }
  int64_t workspaceBytes() const { return workspace_bytes_; }

  // The memory of one tensor or number.
  struct Binding {
    int64_t id;
    void* memory;
  };
  // Enqueues the graph on the stream of the handle. `bindings` must contain everything that
  // tensor() and number() have added. `workspace` must have workspaceBytes() bytes.
  void execute(cudnnHandle_t handle, const std::vector<Binding>& bindings, void* workspace) const;

 private:
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type);
  Tensor addTensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides, bool in_memory,
                   bool by_value);
  // A configuration that the heuristic proposes, and its name.
  struct Proposal {
    cudnnBackendDescriptor_t configuration;
    std::string name;
  };
  std::vector<Proposal> propose(cudnnHandle_t handle);

  std::vector<Descriptor> descriptors_;
  std::vector<cudnnBackendDescriptor_t> ops_;
  cudnnBackendDescriptor_t plan_ = nullptr;
  std::string engine_;
  int64_t workspace_bytes_ = 0;
  int64_t ids_ = 0;
};

}  // namespace heddle::host::cudnn
