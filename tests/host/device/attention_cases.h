#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "host/device/attention.h"
#include "host/executable.h"
#include "host/tensor.h"
#include "ir/base/error.h"
#include "ir/reference/reference.h"
#include "tests/host/gpu_device.h"

// Operands of attention on a GPU, and the expected results in double.
namespace heddle::host {

// How an operand lies in memory.
enum class AttentionLies : uint8_t {
  Plain,       // row-major
  TokensOut,   // [batch, tokens, heads, width] in memory, viewed as [batch, heads, tokens, width]
  WithGaps,    // rows of width + 3; heddle copies the operand
  Stretched,   // all heads share one head with stride 0; heddle copies the operand
  Misaligned,  // row-major, starts two bytes after an aligned address
  Between,  // starts two bytes after an aligned address, with other elements between rows and heads
};

struct AttentionShape {
  int64_t batch, heads, queries, keys, width, v_width;
};

inline TensorDesc attentionDesc(DType dtype, std::vector<int64_t> sizes, AttentionLies lies) {
  TensorDesc desc = denseDesc(dtype, std::move(sizes));
  if (lies == AttentionLies::TokensOut) desc.strides = stridesFor(desc.sizes, {0, 2, 1, 3});
  if (lies == AttentionLies::Between) {
    const int64_t row = desc.sizes[1] * desc.sizes[3];
    desc.strides = {3 * row * desc.sizes[2], desc.sizes[3], 3 * row, 1};
  }
  if (lies == AttentionLies::Stretched) desc.strides = {desc.strides[1], 0, desc.strides[2], 1};
  if (lies != AttentionLies::WithGaps) return desc;
  int64_t span = desc.sizes[3] + 3;
  for (size_t i = 3; i-- > 0;) {
    desc.strides[i] = span;
    span *= desc.sizes[i];
  }
  return desc;
}

inline double attentionUnit(DType dtype) { return dtype == DType::BF16 ? 0x1p-8 : 0x1p-11; }

class AttentionGpu : public GpuDeviceFixture {
 protected:
  void SetUp() override {
    GpuDeviceFixture::SetUp();
    if (IsSkipped()) return;
    std::string why;
    if (findCudnnModule(why) == nullptr) GTEST_SKIP() << why;
  }

  Tensor place(const HostTensor& values, AttentionLies lies) {
    const TensorDesc desc = attentionDesc(values.dtype, values.sizes, lies);
    std::vector<std::byte> bytes(static_cast<size_t>(desc.allocBytes()));
    packInto(bytes.data(), desc, values);
    const bool is_off = lies == AttentionLies::Misaligned || lies == AttentionLies::Between;
    const int64_t shift = is_off ? 2 : 0;
    void* memory = static_cast<std::byte*>(allocate(desc.allocBytes() + shift + 16)) + shift;
    device_->copy(memory, bytes.data(), desc.allocBytes(), stream_, {});
    finish(stream_);
    return {memory, desc, {}};
  }

  // Requires that the memory between the elements is zero. place() writes zeros there, and nothing
  // else may write there.
  void expectZerosBetween(const Tensor& tensor) {
    const auto size = static_cast<size_t>(tensor.desc.allocBytes());
    std::vector<std::byte> bytes(size);
    device_->copy(bytes.data(), tensor.data, tensor.desc.allocBytes(), stream_, {});
    finish(stream_);
    packInto(bytes.data(), tensor.desc, HostTensor(tensor.desc.dtype, tensor.desc.sizes));
    EXPECT_EQ(bytes, std::vector<std::byte>(size));
  }

  HostTensor fetch(const Tensor& tensor) { return toHost(*device_, tensor); }
};

inline SizeBindings attentionSizes(const AttentionShape& x) {
  return {{"b", x.batch}, {"h", x.heads}, {"t", x.queries},
          {"s", x.keys},  {"e", x.width}, {"f", x.v_width}};
}

inline std::vector<double> attentionNumbers(const HostTensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.numel(); ++i) result.push_back(toDouble(tensor.at(i)));
  return result;
}

// Returns the exact result of one query row. The query reads `seen` keys, beginning at key row
// `first_key`.
inline std::vector<double> attentionRow(const AttentionShape& x, const std::vector<double>& q,
                                        int64_t row, const std::vector<double>& k,
                                        const std::vector<double>& v, int64_t first_key,
                                        int64_t seen) {
  std::vector<double> shares(static_cast<size_t>(seen));
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (int64_t i = 0; i < x.width; ++i) {
      score += q[static_cast<size_t>(row * x.width + i)] *
               k[static_cast<size_t>((first_key + j) * x.width + i)];
    }
    shares[static_cast<size_t>(j)] = score / std::sqrt(static_cast<double>(x.width));
    top = std::max(top, shares[static_cast<size_t>(j)]);
  }
  for (double& share : shares) sum += share = std::exp(share - top);
  std::vector<double> result(static_cast<size_t>(x.v_width));
  for (int64_t j = 0; j < seen; ++j) {
    for (int64_t i = 0; i < x.v_width; ++i) {
      result[static_cast<size_t>(i)] += shares[static_cast<size_t>(j)] / sum *
                                        v[static_cast<size_t>((first_key + j) * x.v_width + i)];
    }
  }
  return result;
}

inline void expectAttention(const AttentionShape& x, bool causal, const HostTensor& q,
                            const HostTensor& k, const HostTensor& v, const HostTensor& got,
                            const std::string& what) {
  const std::vector<double> qs = attentionNumbers(q), ks = attentionNumbers(k),
                            vs = attentionNumbers(v), ys = attentionNumbers(got);
  double most = 0;
  for (double each : vs) most = std::max(most, std::fabs(each));
  double worst = 0;
  for (int64_t row = 0; row < x.batch * x.heads * x.queries; ++row) {
    const int64_t seen = causal ? std::min(x.keys, row % x.queries + 1) : x.keys;
    const auto exact = attentionRow(x, qs, row, ks, vs, row / x.queries * x.keys, seen);
    for (size_t i = 0; i < exact.size(); ++i) {
      const double y = ys[static_cast<size_t>(row) * exact.size() + i];
      worst = std::max(worst, std::isnan(y) ? INFINITY : std::fabs(y - exact[i]));
    }
  }
  EXPECT_LE(worst, 2 * attentionUnit(q.dtype) * most + 1e-5) << what;
}

inline HostTensor attentionSample(DType dtype, std::vector<int64_t> sizes, const char* name,
                                  bool one_head) {
  HostTensor tensor = randomTensor(dtype, sizes, 5, name);
  if (!one_head) return tensor;
  const int64_t a_head = sizes[2] * sizes[3];
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.set(i, tensor.at(i / a_head / sizes[1] * sizes[1] * a_head + i % a_head));
  }
  return tensor;
}

}  // namespace heddle::host
