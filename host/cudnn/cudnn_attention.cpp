#include "host/cudnn/cudnn_attention.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "host/cudnn/cudnn_graph.h"
#include "ir/error.h"

namespace heddle::host::cudnn {
namespace {

constexpr int64_t kAlignment = 256;  // of parts of a workspace
constexpr uintptr_t kVectorBytes = 16;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// cuDNN's handle is used by one thread at a time.
struct SharedHandle {
  explicit SharedHandle(int on) : device(on) {
    const CurrentDevice current(device);
    check(cudnnCreate(&handle), "cudnnCreate");
  }
  ~SharedHandle() { cudnnDestroy(handle); }
  SharedHandle(const SharedHandle&) = delete;
  SharedHandle& operator=(const SharedHandle&) = delete;

  const int device;
  cudnnHandle_t handle = nullptr;
  std::mutex mutex;
};

std::shared_ptr<SharedHandle> handleOf(int device) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<SharedHandle>> handles;
  const std::lock_guard lock(mutex);
  std::weak_ptr<SharedHandle>& known = handles[device];
  std::shared_ptr<SharedHandle> handle = known.lock();
  if (handle == nullptr) known = handle = std::make_shared<SharedHandle>(device);
  return handle;
}

// A tensor as cuDNN has it: [batch, heads, tokens, width]. An axis of one element lies around the
// next one, whatever its stride was.
struct FourAxes {
  explicit FourAxes(const TensorDesc& desc) : sizes(4, 1), strides(4, 1) {
    HEDDLE_CHECK(desc.rank() >= 2 && desc.rank() <= 4, "attention of rank {}", desc.rank());
    const size_t missing = 4 - desc.rank();
    std::copy(desc.sizes.begin(), desc.sizes.end(),
              sizes.begin() + static_cast<ptrdiff_t>(missing));
    for (size_t i = 4; i-- > 0;) {
      const int64_t around = i == 3 ? 1 : sizes[i + 1] * strides[i + 1];
      strides[i] = sizes[i] == 1 ? around : desc.strides[i - missing];
    }
  }
  FourAxes turned() const {
    FourAxes result = *this;
    std::swap(result.sizes[2], result.sizes[3]);
    std::swap(result.strides[2], result.strides[3]);
    return result;
  }
  Graph::Sizes sizes;
  Graph::Sizes strides;
};

int64_t spanBytes(const TensorDesc& desc) {
  int64_t last = 0;
  for (size_t i = 0; i < desc.rank(); ++i) last += (desc.sizes[i] - 1) * desc.strides[i];
  return (last + 1) * sizeOf(desc.dtype);
}

// An operand whose address is not aligned, moved to one that is.
class Moved {
 public:
  Moved(void* memory, int64_t bytes, cudaStream_t stream)
      : given_(memory), bytes_(static_cast<size_t>(bytes)), stream_(stream) {
    if (reinterpret_cast<uintptr_t>(memory) % kVectorBytes == 0) return;
    check(cudaMallocAsync(&own_, bytes_, stream), "cudaMallocAsync");
    copy(own_, given_);
  }
  ~Moved() {
    if (own_ != nullptr) cudaFreeAsync(own_, stream_);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  void* get() const { return own_ == nullptr ? given_ : own_; }
  void copyBack() const {
    if (own_ != nullptr) copy(given_, own_);
  }

 private:
  void copy(void* to, const void* from) const {
    check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
  }

  void* given_;
  void* own_ = nullptr;
  size_t bytes_;
  cudaStream_t stream_;
};

class PreparedAttention : public PreparedMatmul {
 public:
  PreparedAttention(const AttentionSpec& spec, int device)
      : spec_(spec), handle_(handleOf(device)) {
    build();
    const CurrentDevice current(device);
    const std::lock_guard lock(handle_->mutex);
    graph_.plan(handle_->handle);
  }

  int64_t workspaceBytes() const override { return rows_bytes_ + graph_.workspaceBytes(); }

  void run(const MatmulOperands& operands, Stream stream, const Issue& issue) const override {
    if (issue.errors != nullptr && issue.errors->failed()) return;
    const CurrentDevice current(handle_->device);
    const auto native = static_cast<cudaStream_t>(stream);
    const Moved q(const_cast<void*>(operands.a), spanBytes(spec_.q), native);
    const Moved k(const_cast<void*>(operands.b), spanBytes(spec_.k), native);
    const Moved v(const_cast<void*>(operands.bias), spanBytes(spec_.v), native);
    const Moved o(operands.c, spanBytes(spec_.o), native);
    float scale = spec_.scale;
    float never = -std::numeric_limits<float>::infinity();
    std::vector<Graph::Binding> bindings = {{q_.id, q.get()},    {k_.id, k.get()},
                                            {v_.id, v.get()},    {o_.id, o.get()},
                                            {scale_.id, &scale}, {rows_.id, operands.workspace}};
    if (spec_.causal) bindings.push_back({never_.id, &never});
    {
      const std::lock_guard lock(handle_->mutex);
      check(cudnnSetStream(handle_->handle, native), "cudnnSetStream");
      graph_.execute(handle_->handle, bindings,
                     static_cast<std::byte*>(operands.workspace) + rows_bytes_);
    }
    o.copyBack();
  }

 private:
  Graph::Tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.inner(type, score_sizes_);
  }
  Graph::Tensor rows() { return graph_.inner(CUDNN_DATA_FLOAT, row_sizes_); }

  // The logarithm of each row's sum goes to memory, which nobody reads: cuDNN has no plan without.
  void build() {
    const cudnnDataType_t half =
        spec_.q.dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    const FourAxes q(spec_.q), k = FourAxes(spec_.k).turned(), v(spec_.v), o(spec_.o);
    score_sizes_ = {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[3]};
    row_sizes_ = {q.sizes[0], q.sizes[1], q.sizes[2], 1};
    const int64_t row_count = row_sizes_[0] * row_sizes_[1] * row_sizes_[2];
    rows_bytes_ = aligned(row_count * static_cast<int64_t>(sizeof(float)));
    q_ = graph_.tensor(half, q.sizes, q.strides);
    k_ = graph_.tensor(half, k.sizes, k.strides);
    v_ = graph_.tensor(half, v.sizes, v.strides);
    o_ = graph_.tensor(half, o.sizes, o.strides);
    rows_ = graph_.tensor(CUDNN_DATA_FLOAT, row_sizes_,
                          {row_sizes_[1] * row_sizes_[2], row_sizes_[2], 1, 1});
    scale_ = graph_.number();
    const Graph::Tensor raw = scores(), scaled = scores();
    graph_.product(q_, k_, raw);
    graph_.pointwise(CUDNN_POINTWISE_MUL, {raw, scale_}, scaled);
    softmax(spec_.causal ? masked(scaled) : scaled, half);
  }

  Graph::Tensor masked(Graph::Tensor scaled) {
    never_ = graph_.number();
    const Graph::Tensor row = scores(CUDNN_DATA_INT32), column = scores(CUDNN_DATA_INT32);
    const Graph::Tensor keep = scores(CUDNN_DATA_BOOLEAN), result = scores();
    graph_.pointwise(CUDNN_POINTWISE_GEN_INDEX, {scaled}, row, 2);
    graph_.pointwise(CUDNN_POINTWISE_GEN_INDEX, {scaled}, column, 3);
    graph_.pointwise(CUDNN_POINTWISE_CMP_GE, {row, column}, keep);
    graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {scaled, never_, keep}, result);
    return result;
  }

  void softmax(Graph::Tensor in, cudnnDataType_t half) {
    const Graph::Tensor top = rows(), moved = scores(), powers = scores(), sum = rows();
    const Graph::Tensor log_sum = rows(), shares = scores(half);
    graph_.reduction(CUDNN_REDUCE_TENSOR_MAX, in, top);
    graph_.pointwise(CUDNN_POINTWISE_SUB, {in, top}, moved);
    graph_.pointwise(CUDNN_POINTWISE_EXP, {moved}, powers);
    graph_.reduction(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
    graph_.pointwise(CUDNN_POINTWISE_LOG, {sum}, log_sum);
    graph_.pointwise(CUDNN_POINTWISE_ADD, {top, log_sum}, rows_);
    graph_.pointwise(CUDNN_POINTWISE_DIV, {powers, sum}, shares);
    graph_.product(shares, v_, o_);
  }

  const AttentionSpec spec_;
  const std::shared_ptr<SharedHandle> handle_;
  Graph graph_;
  Graph::Sizes score_sizes_;
  Graph::Sizes row_sizes_;
  int64_t rows_bytes_ = 0;
  Graph::Tensor q_, k_, v_, o_, rows_, scale_, never_;
};

}  // namespace

std::shared_ptr<const PreparedMatmul> prepareAttention(const AttentionSpec& spec, int device) {
  return std::make_shared<PreparedAttention>(spec, device);
}

}  // namespace heddle::host::cudnn
