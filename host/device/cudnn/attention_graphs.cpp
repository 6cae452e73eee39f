#include "host/device/cudnn/attention_graphs.h"

#include <algorithm>
#include <limits>

#include "ir/base/check.h"

namespace heddle::host::cudnn {
namespace {

// The sizes and strides of an operand, extended to four axes. An axis with one element may have any
// stride, so its stride is replaced by the stride of dense memory.
struct FourAxes {
  explicit FourAxes(const TensorDesc& desc) : sizes(4, 1), strides(4, 1) {
    HEDDLE_CHECK(desc.rank() >= 2 && desc.rank() <= 4, "attention of rank {}", desc.rank());
    const size_t missing = 4 - desc.rank();
    std::copy(desc.sizes.begin(), desc.sizes.end(),
              sizes.begin() + static_cast<ptrdiff_t>(missing));
    for (size_t i = 4; i-- > 0;) {
      const int64_t dense = i == 3 ? 1 : sizes[i + 1] * strides[i + 1];
      strides[i] = sizes[i] == 1 ? dense : desc.strides[i - missing];
    }
  }
  FourAxes transposed() const {
    FourAxes result = *this;
    std::swap(result.sizes[2], result.sizes[3]);
    std::swap(result.strides[2], result.strides[3]);
    return result;
  }
  Graph::Sizes sizes;
  Graph::Sizes strides;
};

cudnnDataType_t halfTypeOf(const TensorDesc& desc) {
  return desc.dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

}  // namespace

// Returns the number of bytes from the start of the first element to the end of the last element of
// a tensor.
int64_t spanBytes(const TensorDesc& desc) {
  int64_t last = 0;
  for (size_t i = 0; i < desc.rank(); ++i) last += (desc.sizes[i] - 1) * desc.strides[i];
  return (last + 1) * sizeOf(desc.dtype);
}

AttentionGraph::AttentionGraph(const TensorDesc& q, const TensorDesc& k, bool causal, float scale)
    : half_(halfTypeOf(q)), causal_(causal), scale_value_(scale) {
  row_sizes_ = FourAxes(q).sizes;
  row_sizes_[3] = 1;
  score_sizes_ = row_sizes_;
  score_sizes_[3] = FourAxes(k).sizes[2];
}

Graph::Tensor AttentionGraph::logSums() {
  return graph_.tensor(CUDNN_DATA_FLOAT, row_sizes_,
                       {row_sizes_[1] * row_sizes_[2], row_sizes_[2], 1, 1});
}

// cuDNN recognises attention by the operations of the graph. The graphs must therefore contain
// exactly the operations that cuDNN expects.
Graph::Tensor AttentionGraph::maskedScores(Graph::Tensor q, Graph::Tensor transposed_k) {
  scale_ = graph_.number();
  const Graph::Tensor raw = scores(), scaled = scores();
  graph_.matmul(q, transposed_k, raw);
  graph_.pointwise(CUDNN_POINTWISE_MUL, {raw, scale_}, scaled);
  if (!causal_) return scaled;
  never_ = graph_.number();
  const Graph::Tensor row = scores(CUDNN_DATA_INT32), column = scores(CUDNN_DATA_INT32);
  const Graph::Tensor keep = scores(CUDNN_DATA_BOOLEAN), result = scores();
  graph_.pointwise(CUDNN_POINTWISE_GEN_INDEX, {scaled}, row, 2);
  graph_.pointwise(CUDNN_POINTWISE_GEN_INDEX, {scaled}, column, 3);
  graph_.pointwise(CUDNN_POINTWISE_CMP_GE, {row, column}, keep);
  graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {scaled, never_, keep}, result);
  return result;
}

void AttentionGraph::execute(cudnnHandle_t handle, std::vector<Graph::Binding> bindings,
                             void* workspace) const {
  float scale = scale_value_;
  float never = -std::numeric_limits<float>::infinity();
  bindings.push_back({scale_.id, &scale});
  if (causal_) bindings.push_back({never_.id, &never});
  graph_.execute(handle, bindings, workspace);
}

ForwardGraph::ForwardGraph(const AttentionSpec& spec)
    : AttentionGraph(spec.q, spec.k, spec.causal, spec.scale) {
  const FourAxes q(spec.q), k = FourAxes(spec.k).transposed(), v(spec.v), o(spec.o);
  q_ = graph_.tensor(half_, q.sizes, q.strides);
  k_ = graph_.tensor(half_, k.sizes, k.strides);
  v_ = graph_.tensor(half_, v.sizes, v.strides);
  o_ = graph_.tensor(half_, o.sizes, o.strides);
  log_sums_ = logSums();
  addSoftmax(maskedScores(q_, k_));
}

void ForwardGraph::addSoftmax(Graph::Tensor in) {
  const Graph::Tensor max = rows(), shifted = scores(), powers = scores(), sum = rows();
  const Graph::Tensor log_sum = rows(), probabilities = scores(half_);
  graph_.reduction(CUDNN_REDUCE_TENSOR_MAX, in, max);
  graph_.pointwise(CUDNN_POINTWISE_SUB, {in, max}, shifted);
  graph_.pointwise(CUDNN_POINTWISE_EXP, {shifted}, powers);
  graph_.reduction(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  graph_.pointwise(CUDNN_POINTWISE_LOG, {sum}, log_sum);
  graph_.pointwise(CUDNN_POINTWISE_ADD, {max, log_sum}, log_sums_);
  graph_.pointwise(CUDNN_POINTWISE_DIV, {powers, sum}, probabilities);
  graph_.matmul(probabilities, v_, o_);
}

void ForwardGraph::run(cudnnHandle_t handle, const Memory& memory, void* workspace) const {
  execute(handle,
          {{q_.id, memory.q},
           {k_.id, memory.k},
           {v_.id, memory.v},
           {o_.id, memory.o},
           {log_sums_.id, memory.log_sums}},
          workspace);
}

BackwardGraph::BackwardGraph(const AttentionBackwardSpec& spec)
    : AttentionGraph(spec.q, spec.k, spec.causal, spec.scale) {
  const auto in_memory = [&](const FourAxes& axes) {
    return graph_.tensor(half_, axes.sizes, axes.strides);
  };
  q_ = in_memory(FourAxes(spec.q));
  k_ = in_memory(FourAxes(spec.k).transposed());
  v_ = in_memory(FourAxes(spec.v).transposed());
  o_ = in_memory(FourAxes(spec.o.value()));
  grad_ = in_memory(FourAxes(spec.grad));
  log_sums_ = logSums();
  dq_ = in_memory(FourAxes(spec.dq));
  dk_ = in_memory(FourAxes(spec.dk));
  dv_ = in_memory(FourAxes(spec.dv));
  unit_ = graph_.number();
  const Graph::Tensor totals = addRowTotals(*spec.o);
  addGradients(addProbabilities(maskedScores(q_, k_)), totals, spec.k);
}

// Adds the row sums of the elementwise product of p and dp. Here p are the probabilities, g is the
// gradient of o, and dp = g v^T is the gradient of p. The added operations compute the row sums of
// the elementwise product of g and o, which are equal and take less work. cuDNN also expects a
// multiplication by the factor of a dropout. This factor is 1 here.
Graph::Tensor BackwardGraph::addRowTotals(const TensorDesc& o) {
  const Graph::Tensor products = graph_.inner(CUDNN_DATA_FLOAT, FourAxes(o).sizes);
  const Graph::Tensor sums = rows(), totals = rows();
  graph_.pointwise(CUDNN_POINTWISE_MUL, {grad_, o_}, products);
  graph_.reduction(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  graph_.pointwise(CUDNN_POINTWISE_MUL, {sums, unit_}, totals);
  return totals;
}

// Adds the probabilities p = exp(scores - log-sum-exp) and the gradient of v, which is p^T g.
Graph::Tensor BackwardGraph::addProbabilities(Graph::Tensor in) {
  const Graph::Tensor shifted = scores(), probabilities = scores();
  graph_.pointwise(CUDNN_POINTWISE_SUB, {in, log_sums_}, shifted);
  graph_.pointwise(CUDNN_POINTWISE_EXP, {shifted}, probabilities);
  graph_.matmul(transposed(probabilities), grad_, dv_);
  return probabilities;
}

// Adds ds, the gradient of q k^T. It is the elementwise product of p and (g v^T - totals),
// multiplied by the scale. addRowTotals() adds the totals. Also adds the gradient of k, which is
// ds^T q, and the gradient of q, which is ds k.
void BackwardGraph::addGradients(Graph::Tensor probabilities, Graph::Tensor totals,
                                 const TensorDesc& k) {
  const Graph::Tensor raw = scores(), kept = scores(), less = scores(), weighted = scores();
  const Graph::Tensor scaled = scores();
  graph_.matmul(grad_, v_, raw);
  graph_.pointwise(CUDNN_POINTWISE_MUL, {raw, unit_}, kept);
  graph_.pointwise(CUDNN_POINTWISE_SUB, {kept, totals}, less);
  graph_.pointwise(CUDNN_POINTWISE_MUL, {less, probabilities}, weighted);
  graph_.pointwise(CUDNN_POINTWISE_MUL, {weighted, scale_}, scaled);
  graph_.matmul(transposed(scaled), q_, dk_);
  const FourAxes k_axes(k);
  const Graph::Tensor k_rows = graph_.inner(half_, k_axes.sizes, k_axes.strides);
  graph_.reshape(k_, k_rows);
  graph_.matmul(scaled, k_rows, dq_);
}

// Adds the transposed tensor [keys, queries] of `in`, rounded to the half type.
Graph::Tensor BackwardGraph::transposed(Graph::Tensor in) {
  Graph::Sizes sizes = score_sizes_;
  std::swap(sizes[2], sizes[3]);
  const int64_t queries = sizes[3], keys = sizes[2];
  const Graph::Tensor result =
      graph_.inner(half_, sizes, {sizes[1] * queries * keys, queries * keys, 1, keys});
  graph_.reshape(in, result);
  return result;
}

void BackwardGraph::run(cudnnHandle_t handle, const Memory& memory, void* workspace) const {
  float unit = 1;
  execute(handle,
          {{grad_.id, memory.grad},
           {q_.id, memory.q},
           {k_.id, memory.k},
           {v_.id, memory.v},
           {o_.id, memory.o},
           {log_sums_.id, memory.log_sums},
           {dq_.id, memory.dq},
           {dk_.id, memory.dk},
           {dv_.id, memory.dv},
           {unit_.id, &unit}},
          workspace);
}

}  // namespace heddle::host::cudnn
