// Runs C++ kernels with bundles of rows (codegen/families/rows/bundles.h) and compares them with
// the reference evaluator.
#include <cmath>
#include <deque>

#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::bundles_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;

HostTensor elementsOf(Buffer& buffer) {
  HostTensor values(buffer.desc.dtype, buffer.desc.sizes);
  int64_t at = 0;
  buffer.forEach([&](const std::vector<int64_t>& index) {
    values.set(at++, loadElement(buffer.data(), buffer.desc.dtype, buffer.offsetOf(index)));
  });
  return values;
}

// Returns the largest error that the tests accept for a float type. The error is relative to 1 or
// to the magnitude of the value, whichever is larger.
double toleranceOf(DType dtype) {
  switch (dtype) {
    case DType::BF16:
      return 0x1p-6;
    case DType::F16:
      return 0x1p-9;
    case DType::F32:
      return 0x1p-18;
    case DType::F64:
      return 0x1p-45;
    default:
      return 0;
  }
}

// Runs the fusion `text` as one kernel and expects the values of the reference evaluator. Returns
// the number of launches.
size_t expectReference(const std::string& text, std::vector<Buffer> inputs,
                       const SizeBindings& sizes,
                       const std::vector<std::vector<int64_t>>& output_strides = {}) {
  const Fusion fusion = parseFusion("heddle 1 fusion f(" + text + " }", "f");
  ReferenceInputs values;
  std::vector<Buffer*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.tensors[fusion.inputs()[i]] = elementsOf(inputs[i].fill(static_cast<unsigned>(i) + 3));
    in.push_back(&inputs[i]);
  }
  const std::vector<HostTensor> wanted = evaluateReference(fusion, values, sizes);
  std::deque<Buffer> outputs;
  std::vector<Buffer*> out;
  for (size_t i = 0; i < wanted.size(); ++i) {
    out.push_back(&outputs.emplace_back(
        wanted[i].dtype, wanted[i].sizes,
        i < output_strides.size() ? output_strides[i] : std::vector<int64_t>{}));
  }
  const KernelPlan plan = CpuKernels::shared().run(fusion, in, out);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const HostTensor got = elementsOf(outputs[i]);
    for (int64_t e = 0; e < wanted[i].numel(); ++e) {
      const double a = toDouble(got.at(e));
      const double b = toDouble(wanted[i].at(e));
      if (a == b) continue;
      if (std::abs(a - b) <= toleranceOf(wanted[i].dtype) * std::max(1.0, std::abs(b))) continue;
      ADD_FAILURE() << text << ": element " << e << " of output " << i << " is " << a
                    << ", expected " << b;
      break;
    }
  }
  return plan.stages.size();
}

std::string softmax(const std::string& dtype) {
  return fmt::format("%x: {}[n, m, k]) {{ %y = softmax(%x, axis=1) return %y", dtype);
}

TEST(BundlesCpu, SoftmaxIsRightForAllSizesAndTypes) {
  for (const char* name : {"f32", "bf16", "f16", "f64"}) {
    const DType dtype = dtypeFromName(name).value();
    for (const int64_t m : {2, 65}) {
      for (const int64_t k : {33, 257}) {
        EXPECT_EQ(
            expectReference(softmax(name), {{dtype, {2, m, k}}}, {{"n", 2}, {"m", m}, {"k", k}}),
            1u)
            << name << " " << m << " " << k;
      }
    }
  }
}

TEST(BundlesCpu, StridesMayBeAny) {
  const std::vector<int64_t> sizes = {3, 40, 21};
  const SizeBindings bound = {{"n", 3}, {"m", 40}, {"k", 21}};
  const auto run = [&](std::vector<int64_t> strides, std::vector<int64_t> output_strides) {
    std::vector<Buffer> inputs;
    inputs.emplace_back(DType::F32, sizes, std::move(strides), 4);
    EXPECT_EQ(expectReference(softmax("f32"), std::move(inputs), bound, {output_strides}), 1u);
  };
  run({1000, 24, 1}, {});
  run({21, 63, 1}, {2000, 22, 1});
  run({0, 21, 1}, {});
}

TEST(BundlesCpu, NormsHaveOneLaunchAndStoreStatistics) {
  for (const int64_t k : {7, 130}) {
    for (const char* name : {"f32", "bf16"}) {
      const DType dtype = dtypeFromName(name).value();
      const std::string text = fmt::format(
          "%x: {0}[n, m, k], %w: {0}[m], %b: {0}[k]) {{ %f = cast(%x, dtype=f32) %s = sum(%f, "
          "axes=[1], keepdim=true) %m = mul(%s, {1}) %d = sub(%f, %m) %q = mul(%d, %d) %t = "
          "sum(%q, "
          "axes=[1], keepdim=true) %v = mul(%t, {1}) %a = add(%v, 1e-5) %r = rsqrt(%a) %n = "
          "mul(%d, %r) %u = broadcast(%w, "
          "axes=[0, 2]) %c = broadcast(%b, axes=[0, 1]) %h = mul(%n, %u) %g = add(%h, %c) %y = "
          "cast(%g, dtype={0}) return %y, %m, %r",
          name, 1.0 / 90);
      EXPECT_EQ(expectReference(text, {{dtype, {4, 90, k}}, {dtype, {90}}, {dtype, {k}}},
                                {{"n", 4}, {"m", 90}, {"k", k}}),
                1u);
    }
  }
}

TEST(BundlesCpu, RowsOfSeveralAxesAreRight) {
  for (const int64_t k : {5, 40}) {
    expectReference(
        "%x: f32[a, m, b, n, k], %g: f32[a, m], %r: f32[a, b, k]) { %s = max(%x, axes=[1, 3], "
        "keepdim=true) %d = sub(%x, %s) %u = broadcast(%g, axes=[2, 3, 4]) %e = mul(%d, %u) %c = "
        "broadcast(%r, axes=[1, 3]) %f = add(%e, %c) %t = max(%f, axes=[1, 3], keepdim=true) %y = "
        "sub(%f, %t) return %y, %t",
        {{DType::F32, {2, 5, 3, 4, k}}, {DType::F32, {2, 5}}, {DType::F32, {2, 3, k}}},
        {{"a", 2}, {"m", 5}, {"b", 3}, {"n", 4}, {"k", k}});
  }
}

// The arrays of a bundle would not fit in the cache.
TEST(BundlesCpu, VeryLongRowsNeedSeveralLaunches) {
  EXPECT_GT(expectReference(softmax("f32"), {{DType::F32, {1, 20000, 20}}},
                            {{"n", 1}, {"m", 20000}, {"k", 20}}),
            1u);
}

TEST(BundlesCpu, EmptyRowsHaveTheResultsOfEmptyReductions) {
  expectReference(
      "%x: f32[n, m, k]) { %m = max(%x, axes=[1], keepdim=true) %d = sub(%x, %m) %e = exp(%d) %s "
      "= sum(%e, axes=[1], keepdim=true) %y = div(%e, %s) return %y, %s, %m",
      {{DType::F32, {2, 0, 9}}}, {{"n", 2}, {"m", 0}, {"k", 9}});
}

}  // namespace
}  // namespace heddle::codegen::bundles_cpu_test
