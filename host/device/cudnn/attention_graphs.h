#pragma once

#include "host/device/attention.h"
#include "host/device/cudnn/cudnn_graph.h"

namespace heddle::host::cudnn {

// What the graphs of a forward and of a backward have in common. A tensor is one of four axes to
// cuDNN: [batch, heads, tokens, width].
class AttentionGraph {
 public:
  // As Graph has them.
  void plan(cudnnHandle_t handle) { graph_.plan(handle); }
  int64_t workspaceBytes() const { return graph_.workspaceBytes(); }
  int64_t rowCount() const { return row_sizes_[0] * row_sizes_[1] * row_sizes_[2]; }

 protected:
  AttentionGraph(const TensorDesc& q, const TensorDesc& k, bool causal, float scale);

  Graph::Tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.inner(type, score_sizes_);
  }
  Graph::Tensor rows() { return graph_.inner(CUDNN_DATA_FLOAT, row_sizes_); }
  // The logarithms of the rows' sums of powers, in memory without gaps.
  Graph::Tensor logSums();
  // q k^T scale, of which a causal one has -inf where a row sees no key.
  Graph::Tensor maskedScores(Graph::Tensor q, Graph::Tensor turned_k);
  void execute(cudnnHandle_t handle, std::vector<Graph::Binding> bindings, void* workspace) const;

  const cudnnDataType_t half_;
  Graph graph_;
  Graph::Sizes score_sizes_;
  Graph::Sizes row_sizes_;
  Graph::Tensor scale_;

 private:
  const bool causal_;
  const float scale_value_;
  Graph::Tensor never_;
};

// o = softmax(q k^T scale) v, and the logarithm of each row's sum: cuDNN has no plan without.
class ForwardGraph : public AttentionGraph {
 public:
  explicit ForwardGraph(const AttentionSpec& spec);
  struct Memory {
    void *q, *k, *v, *o, *log_sums;
  };
  void run(cudnnHandle_t handle, const Memory& memory, void* workspace) const;

 private:
  void addSoftmax(Graph::Tensor in);
  Graph::Tensor q_, k_, v_, o_, log_sums_;
};

// The gradients of q, k and v, from what a forward has made.
class BackwardGraph : public AttentionGraph {
 public:
  // `o`: where the forward's result lies.
  BackwardGraph(const AttentionBackwardSpec& spec, const TensorDesc& o);
  struct Memory {
    void *grad, *q, *k, *v, *o, *log_sums, *dq, *dk, *dv;
  };
  void run(cudnnHandle_t handle, const Memory& memory, void* workspace) const;

 private:
  Graph::Tensor addShares(Graph::Tensor scores);
  Graph::Tensor addRowTotals(const TensorDesc& o);
  void addGradients(Graph::Tensor shares, Graph::Tensor totals, const TensorDesc& k);
  Graph::Tensor turned(Graph::Tensor scores);
  Graph::Tensor grad_, q_, k_, v_, o_, log_sums_, dq_, dk_, dv_, unit_;
};

}  // namespace heddle::host::cudnn
