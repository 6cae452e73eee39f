#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "host/compile.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"

// Tests that lookups along a sharded axis keep the bits of every element. The tests of each
// transport (threads, MPI, NCCL) include this file.
namespace heddle::host::testing {

constexpr const char* kLookups = R"(heddle 1
mesh @m = [x=ranks]
fusion lookups(%x: {0}[t, c] shard(@m, 1: x), %y: {0}[c, t] shard(@m, 0: x), %i: i64[n],
               %j: i64[t, n]) with t = 3, c = 23, n = 25 {{
  %selected = index_select(%x, %i, axis=1)
  %rows = embedding(%i, %y)
  %gathered = gather(%x, %j, axis=1)
  %sorted, %order = sort(%x, axis=1)
  %best, %at = topk(%x, k=9, axis=1)
  return %selected, %rows, %gathered, %sorted, %best
}})";

// Both zeros, infinities, NaN, and the smallest and largest numbers of the dtype.
inline std::vector<double> specialNumbers(DType dtype) {
  using Limits = std::numeric_limits<double>;
  double least = Limits::denorm_min(), most = Limits::max();
  if (dtype == DType::F32) least = 0x1p-149, most = 0x1.fffffep127;
  if (dtype == DType::F16) least = 0x1p-24, most = 65504;
  if (dtype == DType::BF16) least = 0x1p-133, most = 0x1.fep127;
  const double infinity = Limits::infinity();
  return {-0.0, 0.0,   infinity, -infinity, Limits::quiet_NaN(), least, -least,
          most, -most, 1.5,      -0.0};
}

inline HostTensor filled(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values,
                         size_t first) {
  HostTensor tensor(dtype, std::move(sizes));
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.set(i, Scalar(values[(static_cast<size_t>(i) + first) % values.size()]));
  }
  return tensor;
}

inline HostTensor indices(std::vector<int64_t> sizes) {
  HostTensor tensor(DType::I64, std::move(sizes));
  // The steps reach every index of 0 to 22, and the indices -1 and 23, which are out of range.
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, Scalar(i * 7 % 25 - 1));
  return tensor;
}

inline void expectSameBits(const HostTensor& got, const HostTensor& expected,
                           const std::string& what) {
  ASSERT_EQ(got.sizes, expected.sizes) << what;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const double a = toDouble(got.at(i)), b = toDouble(expected.at(i));
    if (std::isnan(a) && std::isnan(b)) continue;
    EXPECT_TRUE(a == b && std::signbit(a) == std::signbit(b))
        << what << ", element " << i << ": " << a << ", expected " << b;
  }
}

// Runs one rank of the job and compares its blocks with those of the unsharded fusion.
inline void expectLookupBits(comm::World& world, Device& device) {
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    const Fusion fusion = parseFusion(fmt::format(kLookups, name(dtype)));
    const Program program = compile(fusion, world.size());
    HarnessOptions options;
    options.ranks = world.size();
    options.sizes = defaultSizes(fusion.size_defaults);
    const std::vector<double> values = specialNumbers(dtype);
    options.tensors = {{"x", filled(dtype, {3, 23}, values, 0)},
                       {"y", filled(dtype, {23, 3}, values, 1)},
                       {"i", indices({25})},
                       {"j", indices({3, 25})}};
    const RankOutputs got = runRank(program, world, device, options);
    const std::vector<HostTensor> expected = expectedOf(fusion, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      const HostTensor block = localBlock(expected[i], got.descs[i]);
      expectSameBits(got.locals[i], block,
                     fmt::format("%{} of {}, rank {} of {}", fusion.value(fusion.outputs()[i]).name,
                                 name(dtype), world.rank(), world.size()));
    }
    world.barrier();  // no rank releases its buffers while another one runs
  }
}

}  // namespace heddle::host::testing
