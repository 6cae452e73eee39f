#pragma once

#include <string>
#include <vector>

#include "host/device/attention.h"
#include "host/device/cudnn/cudnn_graph.h"

namespace heddle::host::cudnn {

// Returns the number of bytes from the start of the first element to the end of the last element of
// a tensor.
int64_t spanBytes(const TensorDesc& desc);

// The common part of ForwardGraph and BackwardGraph, the cuDNN graphs of an attention
// (host/device/attention.h). For cuDNN, all operands have the four axes [batch, heads, tokens,
// width]. A row consists of the scores of one query, that is, of one token of q.
class AttentionGraph {
 public:
  // These functions list and choose engine configurations. See Graph.
  std::vector<std::string> proposals(cudnnHandle_t handle) { return graph_.proposals(handle); }
  void plan(cudnnHandle_t handle, const std::string& choice) { graph_.plan(handle, choice); }
  const std::string& engine() const { return graph_.engine(); }
  int64_t workspaceBytes() const { return graph_.workspaceBytes(); }
  // Returns the number of rows, over all batches and heads.
  int64_t rowCount() const { return row_sizes_[0] * row_sizes_[1] * row_sizes_[2]; }

 protected:
  AttentionGraph(const TensorDesc& q, const TensorDesc& k, bool causal, float scale);

  // Adds an intermediate tensor [batch, heads, queries, keys].
  Graph::Tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.inner(type, score_sizes_);
  }
  // Adds an intermediate tensor with one f32 element per row.
  Graph::Tensor rows() { return graph_.inner(CUDNN_DATA_FLOAT, row_sizes_); }
  // Adds a dense tensor in device memory for the log-sum-exp of each row.
  Graph::Tensor logSums();
  // Adds the scores: q k^T, multiplied by the scale. With a causal mask, the score of a masked key
  // is -inf.
  Graph::Tensor maskedScores(Graph::Tensor q, Graph::Tensor transposed_k);
  // Enqueues the graph. `bindings` must not contain the numbers that maskedScores() has added:
  // execute() adds the bindings of the scale and, with a causal mask, of -inf.
  void execute(cudnnHandle_t handle, std::vector<Graph::Binding> bindings, void* workspace) const;

  const cudnnDataType_t half_;  // type of q, k, v and o: f16 or bf16
  Graph graph_;
  Graph::Sizes score_sizes_;
  Graph::Sizes row_sizes_;
  Graph::Tensor scale_;

 private:
  const bool causal_;
  const float scale_value_;
  Graph::Tensor never_;  // -inf, the score of a masked key
};

// Computes o = softmax(scores) v, where maskedScores() adds the scores. Also computes the
// log-sum-exp of each row, even if the caller does not need it.
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

// Computes the gradients of q, k and v from the gradient of o and the operands and results of a
// ForwardGraph.
class BackwardGraph : public AttentionGraph {
 public:
  // Requires spec.o, the memory of the result of the forward graph.
  explicit BackwardGraph(const AttentionBackwardSpec& spec);
  // `grad` is the gradient of o; dq, dk and dv are the results.
  struct Memory {
    void *grad, *q, *k, *v, *o, *log_sums, *dq, *dk, *dv;
  };
  void run(cudnnHandle_t handle, const Memory& memory, void* workspace) const;

 private:
  Graph::Tensor addProbabilities(Graph::Tensor scores);
  Graph::Tensor addRowTotals(const TensorDesc& o);
  void addGradients(Graph::Tensor probabilities, Graph::Tensor totals, const TensorDesc& k);
  Graph::Tensor transposed(Graph::Tensor scores);
  Graph::Tensor grad_, q_, k_, v_, o_, log_sums_, dq_, dk_, dv_, unit_;
};

}  // namespace heddle::host::cudnn
