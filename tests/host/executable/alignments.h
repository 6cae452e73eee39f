#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

// Tests tensors at addresses of every alignment, on any device that runs kernels.
namespace heddle::host::testing {

constexpr int64_t kAlignmentRows = 5;

// Returns a dense bf16 tensor [kAlignmentRows, columns] that begins `shift` elements after the
// start of its allocation.
inline Tensor shiftedTensor(Device& device, int64_t columns, int64_t shift) {
  const int64_t count = kAlignmentRows * columns;
  HostTensor values(DType::BF16, {count + shift});
  for (int64_t i = 0; i < count; ++i) values.set(i + shift, static_cast<double>(i * 37 % 64) / 16);
  Tensor tensor =
      toDevice(device, device.allocator(), values, denseDesc(DType::BF16, values.sizes));
  tensor.data = static_cast<std::byte*>(tensor.data) + shift * sizeOf(DType::BF16);
  tensor.desc = denseDesc(DType::BF16, {kAlignmentRows, columns});
  return tensor;
}

inline void expectNear(const HostTensor& got, const HostTensor& wanted, const std::string& what) {
  constexpr double kRounding = 0x1p-8;
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    const double value = toDouble(wanted.at(i));
    ASSERT_NEAR(toDouble(got.at(i)), value, kRounding * value) << what << ", element " << i;
  }
}

// Runs a kernel that reduces rows, and other kernels. The input and a preallocated output begin at
// addresses with the alignments 16, 2, 4 and 8. The results must not depend on the alignment.
// Exception: the alignment decides in which order the softmax adds, so its results may differ by
// one rounding.
inline void expectEqualResultsAtAllAlignments(Device& device) {
  for (const int64_t columns : {64, 61, 3}) {
    FusionExecutor executor(
        parseFusion("heddle 1 fusion f(%x: bf16[n, m]) { %y = softmax(%x, axis=-1) %s = sum(%x, "
                    "axes=[1]) %z = mul(%x, 3) return %y, %s, %z }",
                    "f"),
        {&device, nullptr, nullptr});
    std::vector<HostTensor> wanted;
    for (const int64_t shift : {0, 1, 2, 4, 8}) {
      RunOptions options;
      options.preallocated = {shiftedTensor(device, columns, shift), Tensor{}, Tensor{}};
      const Outputs outputs = executor.run({shiftedTensor(device, columns, shift)}, options);
      outputs.wait();
      for (size_t i = 0; i < 3; ++i) {
        HostTensor got = toHost(device, std::get<Tensor>(outputs[i]));
        const std::string what =
            fmt::format("output {}, {} columns, shifted by {}", i, columns, shift);
        if (shift == 0) {
          wanted.push_back(std::move(got));
        } else {
          expectNear(got, wanted[i], what);
        }
      }
    }
    EXPECT_EQ(executor.stats().plans, 4) << "the alignments 16, 2, 4 and 8";
  }
}

// Runs a cat of two computed pieces and an input. The kernels and a copy write them into the
// preallocated result, at addresses of all alignments. The ops are exact.
inline void expectEqualCatsAtAllAlignments(Device& device) {
  for (const int64_t columns : {64, 61, 3}) {
    FusionExecutor executor(
        parseFusion("heddle 1 fusion f(%x: bf16[n, m]) { %a = neg(%x) %b = relu(%x) "
                    "%c = cat(%b, %x, %a, axis=1) return %c }",
                    "f"),
        {&device, nullptr, nullptr});
    for (const int64_t shift : {0, 1, 2, 4, 8}) {
      const Tensor x = shiftedTensor(device, columns, shift);
      RunOptions options;
      options.preallocated = {shiftedTensor(device, 3 * columns, shift)};
      const Outputs outputs = executor.run({x}, options);
      outputs.wait();
      const HostTensor values = toHost(device, x);
      const HostTensor got = toHost(device, std::get<Tensor>(outputs[0]));
      for (int64_t i = 0; i < got.numel(); ++i) {
        const int64_t column = i % (3 * columns);
        const double value = toDouble(values.at(i / (3 * columns) * columns + column % columns));
        const double wanted = column < columns       ? std::max(value, 0.0)
                              : column < 2 * columns ? value
                                                     : -value;
        ASSERT_EQ(toDouble(got.at(i)), wanted)
            << columns << " columns, shifted by " << shift << ", element " << i;
      }
    }
  }
}

}  // namespace heddle::host::testing
