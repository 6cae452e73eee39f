// Tests the f32 functions of codegen/runtime/cpu_vector_math.h over all magnitudes.
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/base/check.h"
#include "tests/codegen/kernel_runner.h"
#include "tests/sanitized.h"

namespace heddle::codegen::cpu_vector_math_cpu_test {
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

// Builds a fusion whose outputs are all functions of %x, which has n elements.
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

// Returns the error in units in the last place of the f32 nearest to `exact`.
double ulps(double got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(CpuVectorMath, ErrorsAreBelowThreeUnitsInTheLastPlace) {
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

// Builds a fusion of every float function of %x, of every float function of %x and %y, and of pow
// with constant exponents. `names` receives the names of the outputs.
Fusion everyRealFunction(DType dtype, std::vector<std::string>& names) {
  FusionBuilder b("real_functions");
  const ValueId x = b.input("x", dtype, symbols("n"));
  const ValueId y = b.input("y", dtype, symbols("n"));
  const auto add = [&](const std::string& name, ValueId id) {
    names.push_back(name);
    b.output(id);
  };
  for (const OpDef& op : opTable()) {
    if (op.kind != OpKind::Pointwise || op.dtype_rule != DTypeRule::PromoteFloat) continue;
    const size_t needed = static_cast<size_t>(op.arity) - op.defaults.size();
    if (needed == 1) add(std::string(op.name), b.pointwise(op.name, {x}));
    if (needed == 2) add(std::string(op.name), b.pointwise(op.name, {x, y}));
  }
  add("pow", b.pointwise("pow", {x, y}));
  for (double exponent : {0.5, -0.5, 0.3}) {
    add(fmt::format("pow {}", exponent), b.pointwise("pow", {x, b.constant(exponent)}));
  }
  return std::move(b).build();
}

// Returns the index of the first element whose bits differ from the bits of element 0, or -1.
int64_t oddElement(Buffer& buffer) {
  const auto* values = static_cast<const char*>(buffer.data());
  const auto size = static_cast<size_t>(sizeOf(buffer.desc.dtype));
  for (int64_t i = 1; i < buffer.desc.numel(); ++i) {
    if (std::memcmp(values, values + static_cast<size_t>(i) * size, size) != 0) return i;
  }
  return -1;
}

// A scalar loop computes the elements after the last full vector. If the scalar loop called libm
// and the vector loop called libmvec, their results would differ.
TEST(CpuVectorMath, ElementsHaveTheSameBitsInEveryLane) {
  constexpr int64_t n = 75;
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::F32, DType::F64}) {
    std::vector<std::string> names;
    const Fusion fusion = everyRealFunction(dtype, names);
    for (double value : {0.37, -1.9, 3e-3, 17.0, 0.61, 1.3, -0.2, -0.0, inf, -inf, 1e-41, 2.2e9}) {
      Buffer x(dtype, {n}), y(dtype, {n});
      for (int64_t i = 0; i < n; ++i) {
        x.set({i}, value);
        y.set({i}, 2.7 - value);
      }
      std::vector<Buffer> outs(names.size(), Buffer(dtype, {n}));
      std::vector<Buffer*> pointers;
      for (Buffer& out : outs) pointers.push_back(&out);
      CpuKernels::shared().run(fusion, {&x, &y}, pointers);
      for (size_t f = 0; f < outs.size(); ++f) {
        ASSERT_EQ(oddElement(outs[f]), -1) << names[f] << " of " << value << ", " << name(dtype);
      }
    }
  }
}

// Compilers vectorize the loops of these kernels differently. For example, a loop that also reads
// bools uses vectors with more lanes. The results must not depend on this.
TEST(CpuVectorMath, FunctionsHaveTheSameBitsInEveryLoop) {
  const auto sine = [](FusionBuilder& b) {
    const ValueId x = b.input("x", DType::F32, symbols("ab"));
    const ValueId flag = b.input("flag", DType::Bool, symbols("ab"));
    return b.pointwise("where", {flag, b.pointwise("sin", {x}), b.constant(-2.0)});
  };
  std::vector<Fusion> fusions;
  for (int64_t axis : {1, 0}) {
    FusionBuilder b("largest");
    b.output(b.reduce("max", sine(b), {axis}));
    fusions.push_back(std::move(b).build());
  }
  FusionBuilder b("every");
  b.output(sine(b));
  fusions.push_back(std::move(b).build());
  constexpr int64_t n = 37;
  for (double value : {0.37, -1.9, 17.0, 0.61, 1.3, 2.2, 401.25}) {
    Buffer x(DType::F32, {n, n}), flag(DType::Bool, {n, n});
    // One element of each line and column determines the maximum.
    for (int64_t i = 0; i < n; ++i) {
      x.set({i, i}, value);
      flag.set({i, i}, 1);
    }
    std::vector<Buffer> outs = {Buffer(DType::F32, {n}), Buffer(DType::F32, {n}),
                                Buffer(DType::F32, {n, n})};
    for (size_t i = 0; i < outs.size(); ++i) {
      CpuKernels::shared().run(fusions[i], {&x, &flag}, {&outs[i]});
    }
    EXPECT_EQ(oddElement(outs[0]), -1) << value;
    EXPECT_EQ(oddElement(outs[1]), -1) << value;
    EXPECT_EQ(outs[0].at({0}), outs[1].at({0})) << value;
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(outs[2].at({i, i}), outs[0].at({0})) << value;
  }
}

TEST(CpuVectorMath, PowByAScalarHalfIsTheSameRootInEveryLane) {
  FusionBuilder b("power");
  const ValueId x = b.input("x", DType::F32, symbols("n"));
  b.output(b.pointwise("pow", {x, b.scalarInput("s", DType::F64)}));
  const Fusion fusion = std::move(b).build();
  constexpr int64_t n = 21;
  const double inf = std::numeric_limits<double>::infinity();
  Buffer in(DType::F32, {n}), root(DType::F32, {n}), inverse(DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) in.set({i}, i % 3 == 0 ? -inf : i % 3 == 1 ? -0.0 : 6.25);
  CpuKernels::shared().run(fusion, {&in, nullptr}, {&root}, {0.0, 0.5});
  CpuKernels::shared().run(fusion, {&in, nullptr}, {&inverse}, {0.0, -0.5});
  for (int64_t i = 0; i < n; i += 3) {
    EXPECT_TRUE(std::isnan(root.at({i}))) << i;
    EXPECT_TRUE(std::isnan(inverse.at({i}))) << i;
    EXPECT_TRUE(root.at({i + 1}) == 0 && std::signbit(root.at({i + 1}))) << i;
    EXPECT_EQ(inverse.at({i + 1}), -inf) << i;
    EXPECT_EQ(root.at({i + 2}), 2.5) << i;
    EXPECT_NEAR(inverse.at({i + 2}), 0.4, 1e-7) << i;
  }
}

}  // namespace
}  // namespace heddle::codegen::cpu_vector_math_cpu_test
