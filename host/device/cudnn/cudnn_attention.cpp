#include "host/device/cudnn/cudnn_attention.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "comm/cuda_call/cuda_call.h"
#include "host/device/cudnn/attention_graphs.h"
#include "host/device/cudnn/attention_questions.h"
#include "host/device/cudnn/cudnn_handle.h"
#include "host/device/timed_choice.h"
#include "ir/base/check.h"

namespace heddle::host::cudnn {
namespace {

constexpr int64_t kAlignment = 256;     // alignment of the workspace's parts, in bytes
constexpr uintptr_t kVectorBytes = 16;  // the alignment that cuDNN needs for operands

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// An operand with the alignment that cuDNN needs: the given memory if it is aligned, otherwise
// temporary memory. The constructor copies an operand that is read to the temporary memory.
// copyBack() copies a result from there to the given memory.
class AlignedOperand {
 public:
  AlignedOperand(void* memory, const TensorDesc& desc, bool is_read, cudaStream_t stream)
      : given_(memory), desc_(desc), bytes_(static_cast<size_t>(spanBytes(desc))), stream_(stream) {
    if (reinterpret_cast<uintptr_t>(memory) % kVectorBytes == 0) return;
    HEDDLE_CUDA(cudaMallocAsync, &own_, bytes_, stream);
    if (is_read) copy(own_, given_, bytes_);
  }
  ~AlignedOperand() {
    if (own_ != nullptr) cudaFreeAsync(own_, stream_);
  }
  AlignedOperand(const AlignedOperand&) = delete;
  AlignedOperand& operator=(const AlignedOperand&) = delete;
  void* get() const { return own_ == nullptr ? given_ : own_; }
  void copyBack() const {
    if (own_ == nullptr) return;
    const bool has_gaps = static_cast<int64_t>(bytes_) > desc_.numel() * sizeOf(desc_.dtype);
    if (has_gaps) return copyRowsBack();
    copy(given_, own_, bytes_);
  }

 private:
  void copy(void* to, const void* from, size_t bytes) const {
    HEDDLE_CUDA(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDeviceToDevice, stream_);
  }

  // Copies the operand row by row, because the memory between its rows must not change.
  void copyRowsBack() const {
    const size_t size = sizeOf(desc_.dtype);
    const size_t rows = desc_.rank() - 2;
    const auto width = static_cast<size_t>(desc_.sizes.back()) * size;
    const size_t pitch = std::max(width, static_cast<size_t>(desc_.strides[rows]) * size);
    std::vector<int64_t> at(rows, 0);
    for (;;) {
      const int64_t first =
          std::inner_product(at.begin(), at.end(), desc_.strides.begin(), int64_t{0});
      const size_t offset = static_cast<size_t>(first) * size;
      HEDDLE_CUDA(cudaMemcpy2DAsync, static_cast<char*>(given_) + offset, pitch,
                  static_cast<const char*>(own_) + offset, pitch, width,
                  static_cast<size_t>(desc_.sizes[rows]), cudaMemcpyDeviceToDevice, stream_);
      size_t axis = rows;
      while (axis > 0 && ++at[axis - 1] == desc_.sizes[axis - 1]) at[--axis] = 0;
      if (axis == 0) return;
    }
  }

  void* given_;
  void* own_ = nullptr;
  const TensorDesc& desc_;
  size_t bytes_;
  cudaStream_t stream_;
};

// A prepared attention on a list of tensors. The call reads the first `inputs` tensors and writes
// the remaining ones.
class PreparedCall : public PreparedAttention {
 public:
  // The mutex is locked while the stream is set and the call is enqueued, because other calls use
  // the same handle.
  void run(const Memory& memory, Stream stream, const Issue& issue) const final {
    if (issue.errors != nullptr && issue.errors->failed()) return;
    const CurrentDevice current(handle_->device);
    const auto native = static_cast<cudaStream_t>(stream);
    std::deque<AlignedOperand> operands;
    Memory aligned_memory{{}, memory.workspace};
    for (size_t i = 0; i < tensors_.size(); ++i) {
      operands.emplace_back(memory.operands[i], tensors_[i], i < inputs_, native);
      aligned_memory.operands[i] = operands.back().get();
    }
    {
      const std::lock_guard lock(handle_->mutex);
      check(cudnnSetStream(handle_->handle, native), "cudnnSetStream");
      issueCall(handle_->handle, aligned_memory);
    }
    for (size_t i = inputs_; i < tensors_.size(); ++i) operands[i].copyBack();
  }

 protected:
  PreparedCall(std::vector<TensorDesc> tensors, size_t inputs, int device)
      : tensors_(std::move(tensors)), inputs_(inputs), handle_(handleOf(device)) {}

  // Builds the plan of a graph. `question` describes the graph.
  void plan(AttentionGraph& graph, const std::string& question, const AlgorithmChoices& choices) {
    const CurrentDevice current(handle_->device);
    const std::lock_guard lock(handle_->mutex);
    const auto choice = choices.find(question);
    graph.plan(handle_->handle, choice == choices.end() ? "" : choice->second);
  }

  virtual void issueCall(cudnnHandle_t handle, const Memory& memory) const = 0;

 private:
  const std::vector<TensorDesc> tensors_;
  const size_t inputs_;
  const std::shared_ptr<SharedHandle> handle_;
};

int64_t bytesOfRows(const AttentionGraph& graph) {
  return aligned(graph.rowCount() * static_cast<int64_t>(sizeof(float)));
}

std::byte* after(void* memory, int64_t bytes) { return static_cast<std::byte*>(memory) + bytes; }

std::vector<TensorDesc> tensorsOf(const AttentionSpec& spec) {
  std::vector<TensorDesc> tensors = {spec.q, spec.k, spec.v, spec.o};
  if (spec.log_sums) tensors.push_back(*spec.log_sums);
  return tensors;
}

// A forward pass. If the spec has log-sums, the workspace is the workspace of the graph. Otherwise
// the workspace consists of the log-sums, followed by the workspace of the graph, because the graph
// computes the log-sums even if nothing reads them.
class PreparedForward : public PreparedCall {
 public:
  PreparedForward(const AttentionSpec& spec, int device, const AlgorithmChoices& choices)
      : PreparedCall(tensorsOf(spec), 3, device),
        graph_(spec),
        own_bytes_(spec.log_sums ? 0 : bytesOfRows(graph_)) {
    plan(graph_, questionOf(spec), choices);
  }

  int64_t workspaceBytes() const override { return own_bytes_ + graph_.workspaceBytes(); }

 private:
  void issueCall(cudnnHandle_t handle, const Memory& memory) const override {
    const auto& at = memory.operands;
    void* log_sums = own_bytes_ > 0 ? memory.workspace : at[4];
    graph_.run(handle, {at[0], at[1], at[2], at[3], log_sums}, after(memory.workspace, own_bytes_));
  }

  ForwardGraph graph_;
  const int64_t own_bytes_;  // size of the log-sums in the workspace
};

// A backward pass that reads o and the log-sums. The workspace is the workspace of the graph.
class PreparedBackward : public PreparedCall {
 public:
  PreparedBackward(const AttentionBackwardSpec& spec, int device, const AlgorithmChoices& choices)
      : PreparedCall(
            {spec.grad, spec.q, spec.k, spec.v, *spec.o, *spec.log_sums, spec.dq, spec.dk, spec.dv},
            6, device),
        graph_(spec) {
    plan(graph_, questionOf(spec), choices);
  }

  int64_t workspaceBytes() const override { return graph_.workspaceBytes(); }

 private:
  void issueCall(cudnnHandle_t handle, const Memory& memory) const override {
    const auto& [grad, q, k, v, o, log_sums, dq, dk, dv] = memory.operands;
    graph_.run(handle, {grad, q, k, v, o, log_sums, dq, dk, dv}, memory.workspace);
  }

  BackwardGraph graph_;
};

// Returns the descriptor of o in the workspace of a PreparedForwardAndBackward.
TensorDesc resultFor(const AttentionBackwardSpec& spec) {
  return denseDesc(spec.grad.dtype, spec.grad.sizes);
}

// Returns the forward pass that a PreparedForwardAndBackward runs first.
AttentionSpec forwardOf(const AttentionBackwardSpec& spec) {
  return {spec.q, spec.k, spec.v, resultFor(spec), {}, spec.causal, spec.scale};
}

// Returns the spec with the result of this forward pass.
AttentionBackwardSpec withResult(AttentionBackwardSpec spec) {
  spec.o = resultFor(spec);
  return spec;
}

// A backward pass that first computes o and the log-sums. The workspace has three parts: the
// log-sums, o, and the workspace of the graphs. Both graphs use the third part, one after the
// other.
class PreparedForwardAndBackward : public PreparedCall {
 public:
  PreparedForwardAndBackward(const AttentionBackwardSpec& spec, int device,
                             const AlgorithmChoices& choices)
      : PreparedCall({spec.grad, spec.q, spec.k, spec.v, spec.dq, spec.dk, spec.dv}, 4, device),
        forward_(forwardOf(spec)),
        backward_(withResult(spec)),
        result_bytes_(aligned(resultFor(spec).allocBytes())) {
    plan(forward_, questionOf(forwardOf(spec)), choices);
    plan(backward_, questionOf(withResult(spec)), choices);
  }

  int64_t workspaceBytes() const override {
    return bytesOfRows(forward_) + result_bytes_ +
           std::max(forward_.workspaceBytes(), backward_.workspaceBytes());
  }

 private:
  void issueCall(cudnnHandle_t handle, const Memory& memory) const override {
    const auto& [grad, q, k, v, dq, dk, dv, x, y] = memory.operands;
    void* log_sums = memory.workspace;
    void* o = after(log_sums, bytesOfRows(forward_));
    void* rest = after(o, result_bytes_);
    forward_.run(handle, {q, k, v, o, log_sums}, rest);
    backward_.run(handle, {grad, q, k, v, o, log_sums, dq, dk, dv}, rest);
  }

  ForwardGraph forward_;
  BackwardGraph backward_;
  const int64_t result_bytes_;
};

}  // namespace

std::set<std::string> questions(const AttentionSpec& spec) {
  if (!librariesAreTimed()) return {};
  return {questionOf(spec)};
}

std::set<std::string> backwardQuestions(const AttentionBackwardSpec& spec) {
  if (!librariesAreTimed()) return {};
  if (spec.o) return {questionOf(spec)};
  return {questionOf(forwardOf(spec)), questionOf(withResult(spec))};
}

std::shared_ptr<const PreparedAttention> prepareAttention(const AttentionSpec& spec, int device,
                                                          const AlgorithmChoices& choices) {
  return std::make_shared<PreparedForward>(spec, device, choices);
}

std::shared_ptr<const PreparedAttention> prepareAttentionBackward(const AttentionBackwardSpec& spec,
                                                                  int device,
                                                                  const AlgorithmChoices& choices) {
  HEDDLE_CHECK(spec.o.has_value() == spec.log_sums.has_value(), "o without its log-sums");
  if (spec.o) return std::make_shared<PreparedBackward>(spec, device, choices);
  return std::make_shared<PreparedForwardAndBackward>(spec, device, choices);
}

}  // namespace heddle::host::cudnn
