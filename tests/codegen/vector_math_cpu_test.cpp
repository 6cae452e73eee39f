// The f32 functions of codegen/runtime/cpu_vector_math.h over all magnitudes.
#include <cmath>
#include <cstring>

#include "tests/codegen/kernel_runner.h"
#include "tests/sanitized.h"

namespace heddle::codegen {
namespace {

using testing::Buffer;
using testing::CpuKernels;
using testing::symbols;

struct Function {
  const char* name;
  double (*exact)(double);
};
constexpr Function kFunctions[] = {{"exp", std::exp},     {"expm1", std::expm1}, {"log", std::log},
                                   {"log1p", std::log1p}, {"tanh", std::tanh},   {"erf", std::erf}};

// Each function as an output, of %x of n elements.
Fusion everyFunction() {
  FusionBuilder b("vector_math");
  const ValueId x = b.input("x", DType::F32, symbols("n"));
  for (const Function& function : kFunctions) b.output(b.pointwise(function.name, {x}));
  return std::move(b).build();
}

std::vector<Buffer> run(Buffer& in) {
  std::vector<Buffer> outs(std::size(kFunctions), Buffer(DType::F32, in.desc.sizes));
  std::vector<Buffer*> pointers;
  for (Buffer& out : outs) pointers.push_back(&out);
  CpuKernels::shared().run(everyFunction(), {&in}, pointers);
  return outs;
}

float nth(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Units in the last place of the f32 nearest to `exact`.
double ulps(double got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(VectorMathCpu, ErrorsAreBelowThreeUnitsInTheLastPlace) {
  constexpr int64_t n = (1 << 20) / heddle::testing::kOneIn;
  constexpr uint32_t step = 4099u * heddle::testing::kOneIn;
  Buffer in(DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) in.set({i}, nth(static_cast<uint32_t>(i) * step));
  std::vector<Buffer> outs = run(in);
  for (size_t f = 0; f < outs.size(); ++f) {
    for (int64_t i = 0; i < n; ++i) {
      const double x = in.at({i});
      const double got = outs[f].at({i});
      const double exact = kFunctions[f].exact(x);
      const auto rounded = static_cast<float>(exact);
      if (std::isfinite(rounded)) {
        ASSERT_LT(ulps(got, exact), 3) << kFunctions[f].name << " of " << x << " is " << got;
        ASSERT_TRUE(rounded != 0 || std::signbit(got) == std::signbit(rounded))
            << kFunctions[f].name << " of " << x;
      } else {
        ASSERT_TRUE(std::isnan(rounded) ? std::isnan(got) : got == rounded)
            << kFunctions[f].name << " of " << x << " is " << got;
      }
    }
  }
}

// Also in the rest of a loop that no vector fills.
TEST(VectorMathCpu, AnElementHasTheSameBitsInEveryLane) {
  constexpr int64_t n = 75;
  for (double x : {0.37, -1.9, 3e-3, 17.0}) {
    Buffer in(DType::F32, {n});
    for (int64_t i = 0; i < n; ++i) in.set({i}, x);
    std::vector<Buffer> outs = run(in);
    for (size_t f = 0; f < outs.size(); ++f) {
      const auto* values = static_cast<const char*>(outs[f].data());
      for (size_t i = 1; i < n; ++i) {
        ASSERT_EQ(std::memcmp(values, values + i * sizeof(float), sizeof(float)), 0)
            << kFunctions[f].name << " of " << x << " in lane " << i;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::codegen
