#include <cmath>
#include <limits>

#include "codegen/plan/analysis.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::emit_items_cpp_reduction_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;
using testing::symbols;

Fusion reduceOnly(const std::string& op, const std::string& axes, std::vector<int64_t> reduced,
                  DType dtype = DType::F32, bool keepdim = false) {
  FusionBuilder b("reduce");
  ValueId x = b.input("x", dtype, symbols(axes));
  b.output(b.reduce(op, x, std::move(reduced), keepdim));
  return std::move(b).build();
}

// Computes the sum over the reduced axes by plain loops in double.
std::vector<double> sums(Buffer& x, const std::vector<int64_t>& reduced) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < static_cast<int64_t>(x.desc.rank()); ++i) {
    if (std::find(reduced.begin(), reduced.end(), i) == reduced.end()) kept.push_back(i);
  }
  int64_t count = 1;
  for (int64_t i : kept) count *= x.desc.sizes[static_cast<size_t>(i)];
  std::vector<double> result(static_cast<size_t>(count), 0.0);
  x.forEach([&](const std::vector<int64_t>& index) {
    int64_t at = 0;
    for (int64_t i : kept)
      at = at * x.desc.sizes[static_cast<size_t>(i)] + index[static_cast<size_t>(i)];
    result[static_cast<size_t>(at)] += x.at(index);
  });
  return result;
}

void expectSums(Buffer x, const std::vector<int64_t>& reduced, const std::string& names) {
  Fusion f = reduceOnly("sum", names, reduced);
  std::vector<double> want = sums(x.fill(7), reduced);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < x.desc.rank(); ++i) {
    if (std::find(reduced.begin(), reduced.end(), i) == reduced.end())
      sizes.push_back(x.desc.sizes[i]);
  }
  Buffer out(DType::F32, sizes);
  CpuKernels::shared().run(f, {&x}, {&out});
  for (size_t i = 0; i < want.size(); ++i) {
    // The values are multiples of 1/8 and the sums are below 2^21. The f32 sum is therefore exact
    // in any order.
    ASSERT_EQ(toDouble(loadElement(out.data(), DType::F32, static_cast<int64_t>(i))), want[i])
        << "element " << i << " of " << str(x.desc.sizes) << " over " << str(reduced);
  }
}

TEST(EmitItemsCppReductionCpu, SumsOverAnyAxesAreExact) {
  for (auto sizes : {std::vector<int64_t>{3, 5, 7}, {1, 17, 1}, {40, 2, 300}}) {
    for (auto axes : {std::vector<int64_t>{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}, {0, 2}}) {
      expectSums(Buffer(DType::F32, sizes), axes, "abc");
    }
  }
}

TEST(EmitItemsCppReductionCpu, SumsOfStridedTensorsAreExact) {
  expectSums(Buffer(DType::F32, {30, 50}, {1, 30}), {0}, "ab");
  expectSums(Buffer(DType::F32, {30, 50}, {1, 30}), {1}, "ab");
  expectSums(Buffer(DType::F32, {30, 50}, {120, 2}), {1}, "ab");
  expectSums(Buffer(DType::F32, {30, 50}, {0, 1}), {0}, "ab");
  expectSums(Buffer(DType::F32, {30, 50}, {1, 0}), {1}, "ab");
  expectSums(Buffer(DType::F32, {31, 53}, {}, 4), {1}, "ab");
}

TEST(EmitItemsCppReductionCpu, EmptyReductionGivesTheIdentity) {
  Buffer x(DType::F32, {0, 6}), out(DType::F32, {6});
  out.fill(1);
  CpuKernels::shared().run(reduceOnly("max", "ab", {0}), {&x}, {&out});
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(out.at({i}), -std::numeric_limits<double>::infinity());
  Buffer none(DType::F32, {0});
  EXPECT_TRUE(CpuKernels::shared().run(reduceOnly("max", "ab", {1}), {&x}, {&none}).stages.empty());
}

TEST(EmitItemsCppReductionCpu, TwoStageSumIsAccurate) {
  constexpr int64_t n = 10'000'000;
  Buffer x(DType::F32, {n}), out(DType::F32, {});
  float* data = static_cast<float*>(x.data());
  double want = 0;
  for (int64_t i = 0; i < n; ++i) {
    data[i] = 0.1f + static_cast<float>(i % 7) * 0.3f;
    want += data[i];
  }
  KernelPlan plan = CpuKernels::shared().run(reduceOnly("sum", "a", {0}), {&x}, {&out});
  EXPECT_EQ(plan.stages.size(), 2u);
  EXPECT_GT(plan.workspace_bytes, 0);
  EXPECT_NEAR(out.at({}), want, want * 2e-6);
}

TEST(EmitItemsCppReductionCpu, MaxHandlesNegativesAndNan) {
  Fusion f = reduceOnly("max", "ab", {1});
  Buffer x(DType::F32, {3, 1000}), out(DType::F32, {3});
  x.forEach([&](const std::vector<int64_t>& i) { x.set(i, -5.0 - static_cast<double>(i[1])); });
  x.set({1, 777}, std::numeric_limits<double>::quiet_NaN());
  x.set({2, 0}, -std::numeric_limits<double>::infinity());
  CpuKernels::shared().run(f, {&x}, {&out});
  EXPECT_EQ(out.at({0}), -5);
  EXPECT_TRUE(std::isnan(out.at({1})));
  EXPECT_EQ(out.at({2}), -6);
}

// The kernel has pointwise ops before and after two reductions, and an unreduced output. It reads
// an input after the reductions, and has a bf16 value and an i64 value.
TEST(EmitItemsCppReductionCpu, KernelMayMixReductionsAndPointwiseOps) {
  FusionBuilder b("all");
  ValueId x = b.input("x", DType::BF16, symbols("ab"));
  ValueId k = b.input("k", DType::I64, symbols("ab"));
  ValueId w = b.input("w", DType::F32, symbols("b"));
  ValueId scaled = b.pointwise("mul", {b.cast(x, DType::F32), w});
  ValueId total = b.reduce("sum", scaled, {0});
  b.output(scaled);
  b.output(b.pointwise("add", {b.pointwise("mul", {total, b.constant(2.0)}), w}));
  b.output(b.reduce(
      "min", b.pointwise("where", {b.pointwise("lt", {x, w}), k, b.constant(int64_t{5})}), {0}));
  b.output(b.reduce("sum", x, {0}, true));
  Fusion f = std::move(b).build();
  ASSERT_EQ(whyNotOneKernel(f), "");
  for (auto [m, n] : {std::pair<int64_t, int64_t>{70, 90}, {3000, 5}, {1, 1}}) {
    Buffer vx(DType::BF16, {m, n}), vk(DType::I64, {m, n}), vw(DType::F32, {n});
    Buffer full(DType::F32, {m, n}), o1(DType::F32, {n}), o2(DType::I64, {n}),
        o3(DType::BF16, {1, n});
    CpuKernels::shared().run(f, {&vx.fill(1), &vk.fill(2), &vw.fill(3)}, {&full, &o1, &o2, &o3});
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, least = 1e9, plain = 0;
      for (int64_t i = 0; i < m; ++i) {
        ASSERT_EQ(full.at({i, j}), vx.at({i, j}) * vw.at({j}));
        sum += vx.at({i, j}) * vw.at({j});
        plain += vx.at({i, j});
        least = std::min(least, vx.at({i, j}) < vw.at({j}) ? vk.at({i, j}) : 5.0);
      }
      ASSERT_EQ(o1.at({j}), sum * 2 + vw.at({j}));
      ASSERT_EQ(o2.at({j}), least);
      ASSERT_EQ(o3.at({0, j}), double(floatFromBf16(bf16FromFloat(float(plain)))));
    }
  }
}

// A reduction over no elements gives the identity of the reduction for the dtype of the value.
TEST(EmitItemsCppReductionCpu, EmptyBoolReductionGivesTheIdentity) {
  Buffer x(DType::Bool, {3, 0}), most(DType::Bool, {3}), least(DType::Bool, {3});
  CpuKernels::shared().run(reduceOnly("max", "ab", {1}, DType::Bool), {&x}, {&most});
  CpuKernels::shared().run(reduceOnly("min", "ab", {1}, DType::Bool), {&x}, {&least});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(most.at({i}), 0);
    EXPECT_EQ(least.at({i}), 1);
  }
}

TEST(EmitItemsCppReductionCpu, LongReductionWithUnreducedOutputHasTwoStages) {
  FusionBuilder b("split");
  ValueId x = b.input("x", DType::F64, symbols("ab"));
  ValueId y = b.pointwise("neg", {x});
  b.output(b.pointwise("abs", {b.reduce("sum", y, {0, 1})}));
  b.output(y);
  b.output(b.reduce("max", x, {0, 1}));
  Fusion f = std::move(b).build();
  Buffer vx(DType::F64, {700, 801}), total(DType::F64, {}), full(DType::F64, {700, 801}),
      most(DType::F64, {});
  KernelPlan plan = CpuKernels::shared().run(f, {&vx.fill(3)}, {&total, &full, &most});
  EXPECT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(total.at({}), std::fabs(sums(vx, {0, 1})[0]));
  EXPECT_EQ(full.at({699, 800}), -vx.at({699, 800}));
  EXPECT_EQ(most.at({}), 3.875);
}

}  // namespace
}  // namespace heddle::codegen::emit_items_cpp_reduction_cpu_test
