#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "tests/codegen/kernel_runner.h"
#include "tests/erfinv_values.h"

namespace heddle::codegen::cpu_math_cpu_test {
namespace {

using heddle::testing::kErfinvNearOne;
using testing::Buffer;
using testing::CpuKernels;
using testing::symbols;

TEST(CpuMath, ErfinvIsExactNearOne) {
  FusionBuilder b("erfinv");
  b.output(b.pointwise("erfinv", {b.input("x", DType::F64, symbols("n"))}));
  constexpr int64_t kCount = std::size(kErfinvNearOne);
  Buffer in(DType::F64, {kCount});
  Buffer out(DType::F64, {kCount});
  for (int64_t i = 0; i < kCount; ++i) {
    in.set({i}, 1 - std::ldexp(1.0, kErfinvNearOne[i].first));
  }
  CpuKernels::shared().run(std::move(b).build(), {&in}, {&out});
  for (int64_t i = 0; i < kCount; ++i) {
    const auto& [exponent, exact] = kErfinvNearOne[i];
    EXPECT_NEAR(out.at({i}), exact, 2 * 0x1p-52 * exact) << "1 - 2^" << exponent;
  }
}

TEST(CpuMath, ErfinvIsDefinedUpToOne) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<double, double>> cases = {
      {1, kInf}, {-1, -kInf}, {0, 0}, {1.5, kNan}, {kNan, kNan}, {-0.5, -0.4769362762044699}};
  for (const DType dtype : {DType::F32, DType::F64}) {
    FusionBuilder b("erfinv");
    b.output(b.pointwise("erfinv", {b.input("x", dtype, symbols("n"))}));
    const auto count = static_cast<int64_t>(cases.size());
    Buffer in(dtype, {count});
    Buffer out(dtype, {count});
    for (int64_t i = 0; i < count; ++i) in.set({i}, cases[static_cast<size_t>(i)].first);
    CpuKernels::shared().run(std::move(b).build(), {&in}, {&out});
    for (int64_t i = 0; i < count; ++i) {
      const auto& [x, exact] = cases[static_cast<size_t>(i)];
      const double got = out.at({i});
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(got)) << x;
      } else if (std::isinf(exact)) {
        EXPECT_EQ(got, exact) << x;
      } else {
        EXPECT_NEAR(got, exact, dtype == DType::F32 ? 1e-7 : 1e-15) << x;
      }
    }
  }
}

// The kernels of these types have another text (OpDef::rounded_text), and also need libm.
TEST(CpuMath, SinesOfNarrowTypes) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const char* op : {"sin", "cos"}) {
      FusionBuilder b(op);
      b.output(b.pointwise(op, {b.input("x", dtype, symbols("n"))}));
      constexpr int64_t kCount = 101;
      Buffer in(dtype, {kCount});
      Buffer out(dtype, {kCount});
      for (int64_t i = 0; i < kCount; ++i) in.set({i}, static_cast<double>(i - 50) / 4);
      CpuKernels::shared().run(std::move(b).build(), {&in}, {&out});
      for (int64_t i = 0; i < kCount; ++i) {
        const double x = in.at({i});
        const double exact = *op == 's' ? std::sin(x) : std::cos(x);
        const double rounding = dtype == DType::BF16 ? 0x1p-8 : 0x1p-11;
        EXPECT_NEAR(out.at({i}), exact, rounding * std::fabs(exact)) << op << "(" << x << ")";
      }
    }
  }
}

}  // namespace
}  // namespace heddle::codegen::cpu_math_cpu_test
