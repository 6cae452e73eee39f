#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::emit_items_cpp_pointwise_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;
using testing::symbols;

// Builds relu(x * y + x) for two equal shapes.
Fusion mulAdd(const std::string& axes, DType dtype = DType::F32) {
  FusionBuilder b("mul_add");
  ValueId x = b.input("x", dtype, symbols(axes));
  ValueId y = b.input("y", dtype, symbols(axes));
  b.output(b.pointwise("relu", {b.pointwise("add", {b.pointwise("mul", {x, y}), x})}));
  return std::move(b).build();
}

void expectMulAdd(Buffer& x, Buffer& y, Buffer& out) {
  out.forEach([&](const std::vector<int64_t>& i) {
    ASSERT_EQ(out.at(i), std::max(0.0, x.at(i) * y.at(i) + x.at(i)));
  });
}

TEST(EmitItemsCppPointwiseCpu, ContiguousTensorsOfAnySizeAreRight) {
  Fusion f = mulAdd("abc");
  std::set<std::string> sources;
  for (auto sizes :
       {std::vector<int64_t>{2, 3, 5}, {1, 1, 1}, {7, 1, 1}, {16, 33, 129}, {1, 1, 40000}}) {
    Buffer x(DType::F32, sizes), y(DType::F32, sizes), out(DType::F32, sizes);
    sources.insert(CpuKernels::shared().run(f, {&x.fill(1), &y.fill(2)}, {&out}).source.text);
    expectMulAdd(x, y, out);
  }
  EXPECT_EQ(sources.size(), 1u) << "one source for all sizes";
}

TEST(EmitItemsCppPointwiseCpu, EmptyTensorsLaunchNothing) {
  Fusion f = mulAdd("abc");
  Buffer x(DType::F32, {3, 0, 2}), y(DType::F32, {3, 0, 2}), out(DType::F32, {3, 0, 2});
  EXPECT_TRUE(CpuKernels::shared().run(f, {&x, &y}, {&out}).stages.empty());
}

TEST(EmitItemsCppPointwiseCpu, TransposedPaddedAndMisalignedTensorsAreRight) {
  Fusion f = mulAdd("ab");
  for (auto [m, n] : {std::pair<int64_t, int64_t>{17, 31}, {64, 128}, {1, 9}, {9, 1}}) {
    Buffer x(DType::F32, {m, n}, {1, m});
    Buffer y(DType::F32, {m, n}, {n + 3, 1}, 4);
    Buffer out(DType::F32, {m, n}, {}, 12);
    CpuKernels::shared().run(f, {&x.fill(3), &y.fill(4)}, {&out});
    expectMulAdd(x, y, out);
  }
}

TEST(EmitItemsCppPointwiseCpu, OutputMayBeAnInput) {
  Fusion f = mulAdd("ab");
  Buffer x(DType::F32, {50, 40}), y(DType::F32, {50, 40});
  x.fill(5);
  y.fill(6);
  Buffer before = x;
  CpuKernels::shared().run(f, {&x, &y}, {&x});
  expectMulAdd(before, y, x);
}

TEST(EmitItemsCppPointwiseCpu, BroadcastAndStrideZeroOperandsAreRight) {
  FusionBuilder b("broadcast");
  ValueId x = b.input("x", DType::F32, symbols("ab"));
  ValueId row = b.input("row", DType::F32, symbols("b"));
  ValueId column = b.input("column", DType::F32, {Size::symbol("a"), Size(1)});
  ValueId wide = b.expand(column, symbols("ab"));
  b.output(b.pointwise("sub", {b.pointwise("add", {x, row}), wide}));
  Fusion f = std::move(b).build();
  Buffer vx(DType::F32, {6, 70}, {0, 1}), vrow(DType::F32, {70}), vcolumn(DType::F32, {6, 1});
  Buffer out(DType::F32, {6, 70});
  CpuKernels::shared().run(f, {&vx.fill(1), &vrow.fill(2), &vcolumn.fill(3)}, {&out});
  out.forEach([&](const std::vector<int64_t>& i) {
    ASSERT_EQ(out.at(i), vx.at(i) + vrow.at({i[1]}) - vcolumn.at({i[0], 0}));
  });
}

TEST(EmitItemsCppPointwiseCpu, MixedDtypesAndSeveralOutputsAreRight) {
  FusionBuilder b("types");
  ValueId d = b.input("d", DType::F64, symbols("n"));
  ValueId i = b.input("i", DType::I64, symbols("n"));
  ValueId h = b.input("h", DType::BF16, symbols("n"));
  ValueId m = b.input("m", DType::Bool, symbols("n"));
  ValueId s = b.scalarInput("s", DType::F64);
  b.output(b.pointwise("where", {m, d, b.pointwise("add", {i, d})}));
  b.output(b.pointwise("mul", {i, i}));
  b.output(b.pointwise("mul", {b.pointwise("add", {h, b.constant(1.0 / 3)}), h}));
  b.output(b.pointwise("lt", {h, s}));
  b.output(b.cast(h, DType::I64));
  b.output(b.pointwise("add", {d, h}));
  Fusion f = std::move(b).build();
  constexpr int64_t n = 1003;
  Buffer vd(DType::F64, {n}), vi(DType::I64, {n}), vh(DType::BF16, {n}, {}, 2),
      vm(DType::Bool, {n});
  Buffer o0(DType::F64, {n}), o1(DType::I64, {n}), o2(DType::BF16, {n}), o3(DType::Bool, {n});
  Buffer o4(DType::I64, {n}), o5(DType::F64, {n});
  CpuKernels::shared().run(f, {&vd.fill(1), &vi.fill(2), &vh.fill(3), &vm.fill(4), nullptr},
                           {&o0, &o1, &o2, &o3, &o4, &o5}, {0.0, 0.0, 0.0, 0.0, 0.25});
  auto bf16 = [](double v) { return double(floatFromBf16(bf16FromFloat(float(v)))); };
  for (int64_t k = 0; k < n; ++k) {
    ASSERT_EQ(o0.at({k}), vm.at({k}) != 0 ? vd.at({k}) : vi.at({k}) + vd.at({k}));
    ASSERT_EQ(o1.at({k}), vi.at({k}) * vi.at({k}));
    // Each op rounds its result to bf16, as if every value were stored.
    double sum = bf16(vh.at({k}) + double(float(1.0 / 3)));
    ASSERT_EQ(o2.at({k}), bf16(sum * vh.at({k})));
    ASSERT_EQ(o3.at({k}), vh.at({k}) < 0.25 ? 1 : 0);
    ASSERT_EQ(o4.at({k}), std::trunc(vh.at({k})));
    ASSERT_EQ(o5.at({k}), vd.at({k}) + vh.at({k}));
  }
}

TEST(EmitItemsCppPointwiseCpu, MathFunctionsAreAccurateAndPropagateNan) {
  FusionBuilder b("math");
  ValueId x = b.input("x", DType::F32, symbols("n"));
  std::vector<std::string> ops = {"exp", "tanh", "erf", "sin", "cos", "sigmoid", "abs", "relu"};
  for (const std::string& name : ops) b.output(b.pointwise(name, {x}));
  b.output(b.pointwise("maximum", {x, b.constant(0.0)}));
  for (double power : {2.0, 3.0, 0.5, 1.7}) b.output(b.pointwise("pow", {x, b.constant(power)}));
  Fusion f = std::move(b).build();
  constexpr int64_t n = 257;
  Buffer in(DType::F32, {n});
  in.fill(9);
  in.set({3}, std::numeric_limits<double>::quiet_NaN());
  std::vector<Buffer> outs(f.outputs().size(), Buffer(DType::F32, {n}));
  std::vector<Buffer*> pointers;
  for (Buffer& o : outs) pointers.push_back(&o);
  CpuKernels::shared().run(f, {&in}, pointers);
  for (int64_t k = 0; k < n; ++k) {
    double v = in.at({k});
    double want[] = {std::exp(v),
                     std::tanh(v),
                     std::erf(v),
                     std::sin(v),
                     std::cos(v),
                     1 / (1 + std::exp(-v)),
                     std::fabs(v),
                     v < 0 ? 0.0 : v,
                     v < 0 ? 0.0 : v,
                     v * v,
                     v * v * v,
                     std::sqrt(v),
                     std::pow(v, double(1.7f))};
    for (size_t o = 0; o < outs.size(); ++o) {
      double got = outs[o].at({k});
      if (std::isnan(want[o])) {
        ASSERT_TRUE(std::isnan(got)) << "output " << o << " of " << v << " is " << got;
      } else {
        ASSERT_NEAR(got, want[o], 1e-6 + 4e-6 * std::fabs(want[o])) << "output " << o;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::emit_items_cpp_pointwise_cpu_test
