#include <cmath>
#include <iterator>

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

}  // namespace
}  // namespace heddle::codegen::cpu_math_cpu_test
