// Tests the forms of 1 + erf(z), 1 + tanh(z), sines and softplus for results that are rounded to 16
// bits (codegen/plan/op_text.h). Runs CUDA kernels on the host and compares them with the C++
// library.
#include "tests/codegen/simt/simt_cases.h"

namespace heddle::codegen::op_text_simt_test {
namespace {

using testing::Cases;

// Adds a kernel that computes `result` from %z = -12, -12 + 1/512, ... 12, and rounds it.
constexpr int64_t kPoints = 24 * 512 + 1;
double pointAt(int64_t i) { return static_cast<double>(i) / 512 - 12; }
void addPoints(Cases& cases, const std::string& result, const std::string& dtype) {
  cases.add(fmt::format(") {{ %i = iota(sizes=[{}], axis=0) %c = cast(%i, dtype=f32) %s = mul(%c, "
                        "0.001953125) %z = sub(%s, 12.0) {} %y = cast(%a, dtype={}) return %y",
                        kPoints, result, dtype),
            {}, {});
}
std::string onePlus(const std::string& f) { return "%f = " + f + "(%z) %a = add(%f, 1.0)"; }

// Compares a kernel with `wanted`. The relative error of an element may be 2^-16 more than
// `rounding`, half the distance between 1 and the next number of the dtype. Numbers below the
// smallest normal number of bf16 and f32 may be 0.
void expectNear(Cases& cases, size_t number, double rounding, double (*wanted)(double)) {
  EXPECT_EQ(cases.run(number, 1, 1e30), "") << cases.name(number);
  const HostTensor got = testing::valuesOf(cases.output(number));
  for (int64_t i = 0; i < kPoints; ++i) {
    const double expected = wanted(pointAt(i));
    const double smallest = got.dtype == DType::F16 ? 0x1p-25 : 0x1p-126;
    const double limit = (rounding + 0x1p-16) * std::fabs(expected) + smallest;
    EXPECT_NEAR(toDouble(got.at(i)), expected, limit) << cases.name(number) << pointAt(i);
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double onePlusErf(double z) { return std::erfc(-z); }
double onePlusTanh(double z) { return 2 / (1 + std::exp(-2 * z)); }

TEST(OpTextSimt, SumsThatCancelAreAccurate) {
  Cases cases;
  addPoints(cases, onePlus("erf"), "bf16");
  addPoints(cases, onePlus("erf"), "f16");
  addPoints(cases, onePlus("tanh"), "bf16");
  addPoints(cases, onePlus("tanh"), "f16");
  cases.compile();
  expectNear(cases, 0, 0x1p-8, onePlusErf);
  expectNear(cases, 1, 0x1p-11, onePlusErf);
  expectNear(cases, 2, 0x1p-8, onePlusTanh);
  expectNear(cases, 3, 0x1p-11, onePlusTanh);
}

// The factors take the angles through many periods, and beyond 2^16. The products are exact in f32.
double sinOf(double z) { return std::sin(z); }
double cosOf(double z) { return std::cos(z); }
double sinOfMany(double z) { return std::sin(z * 1024); }
double cosOfMany(double z) { return std::cos(z * 1024); }
double sinOfLarge(double z) { return std::sin(z * 0x1p20); }
double cosOfLarge(double z) { return std::cos(z * 0x1p20); }

TEST(OpTextSimt, SinesAreAccurateForSmallAndLargeAngles) {
  Cases cases;
  for (const char* f : {"sin", "cos"}) {
    for (const char* dtype : {"bf16", "f16"}) {
      for (const char* factor : {"1.0", "1024.0", "1048576.0"}) {
        addPoints(cases, fmt::format("%m = mul(%z, {}) %a = {}(%m)", factor, f), dtype);
      }
    }
  }
  cases.compile();
  double (*const wanted[])(double) = {sinOf, sinOfMany, sinOfLarge, cosOf, cosOfMany, cosOfLarge};
  for (size_t i = 0; i < cases.size(); ++i) {
    expectNear(cases, i, i % 6 < 3 ? 0x1p-8 : 0x1p-11, wanted[i / 6 * 3 + i % 3]);
  }
}

double softplusOf(double z) { return std::log1p(std::exp(z)); }
double softplusOfTwo(double z) { return std::log1p(std::exp(2 * z)) / 2; }
double softplusOfMinusOne(double z) { return -std::log1p(std::exp(-z)); }
double softplusUpToFive(double z) { return z > 5 ? z : std::log1p(std::exp(z)); }

TEST(OpTextSimt, SoftplusIsAccurate) {
  Cases cases;
  for (const char* dtype : {"bf16", "f16"}) {
    addPoints(cases, "%a = softplus(%z)", dtype);
    addPoints(cases, "%a = softplus(%z, 2.0, 40.0)", dtype);
    addPoints(cases, "%a = softplus(%z, 1.0, 5.0)", dtype);
    addPoints(cases, "%a = softplus(%z, -1.0, 20.0)", dtype);
  }
  cases.compile();
  EXPECT_TRUE(has(cases.text(0), "hd::nearSoftplus("));
  double (*const wanted[])(double) = {softplusOf, softplusOfTwo, softplusUpToFive,
                                      softplusOfMinusOne};
  for (size_t i = 0; i < cases.size(); ++i) {
    expectNear(cases, i, i < 4 ? 0x1p-8 : 0x1p-11, wanted[i % 4]);
  }
}

// The logarithm of 0 is -infinity, so the first sine and cosine are NaN.
TEST(OpTextSimt, SinesOfInfinityAreNan) {
  Cases cases;
  for (const char* f : {"sin", "cos"}) {
    cases.add(fmt::format(") {{ %i = iota(sizes=[4], axis=0) %c = cast(%i, dtype=f32) %l = "
                          "log(%c) %a = {}(%l) %y = cast(%a, dtype=bf16) return %y",
                          f),
              {}, {});
  }
  cases.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases.run(i, 1, 1), "") << cases.name(i);
    EXPECT_TRUE(std::isnan(toDouble(testing::valuesOf(cases.output(i)).at(0)))) << cases.name(i);
  }
}

// Returns the text of a kernel that computes the body from %x and stores %y.
std::string textOf(const std::string& body, const std::string& dtype = "bf16") {
  Cases cases;
  cases.add(fmt::format("%x: {}[n]) {{ {} return %y", dtype, body), {{{64}}}, {{"n", 64}});
  return cases.text(0);
}

TEST(OpTextSimt, GeluOfANarrowTypeHasAFasterForm) {
  const std::string erf = textOf("%y = gelu(%x)");
  EXPECT_TRUE(has(erf, "hd::nearErfc(")) << erf;
  EXPECT_FALSE(has(erf, "hd::erf(")) << erf;
  const std::string tanh = textOf("%y = gelu(%x, approximate=tanh)");
  EXPECT_TRUE(has(tanh, "hd::nearExp(")) << tanh;
  EXPECT_FALSE(has(tanh, "hd::tanh(")) << tanh;
}

TEST(OpTextSimt, SinesOfANarrowTypeHaveAFasterForm) {
  EXPECT_TRUE(has(textOf("%y = sin(%x)"), "hd::nearSin("));
  EXPECT_TRUE(has(textOf("%y = cos(%x)"), "hd::nearCos("));
  EXPECT_TRUE(has(textOf("%y = sin(%x)", "f32"), "hd::sin("));
}

// The result is f32, or it has a small relative error only with an exact sum, or the fusion rounds
// erf(x) to bf16 before it adds 1, or adds another number, or needs erf(x) twice.
TEST(OpTextSimt, OtherSumsKeepTheExactFunction) {
  EXPECT_TRUE(has(textOf("%y = gelu(%x)", "f32"), "hd::erf("));
  EXPECT_TRUE(has(textOf("%c = cast(%x, dtype=f32) %e = erf(%c) %a = add(%e, 1.0) %s = sub(%a, "
                         "%c) %y = cast(%s, dtype=bf16)"),
                  "hd::erf("));
  EXPECT_TRUE(has(textOf("%e = erf(%x) %y = add(%e, 1.0)"), "hd::erf("));
  EXPECT_TRUE(has(textOf("%c = cast(%x, dtype=f32) %e = erf(%c) %a = add(%e, 2.0) %y = cast(%a, "
                         "dtype=bf16)"),
                  "hd::erf("));
  const std::string twice = textOf(
      "%c = cast(%x, dtype=f32) %e = erf(%c) %a = add(%e, 1.0) %m = mul(%e, %c) %p = "
      "mul(%a, %m) %y = cast(%p, dtype=bf16)");
  EXPECT_TRUE(has(twice, "hd::erf(")) << twice;
  EXPECT_FALSE(has(twice, "hd::nearErfc(")) << twice;
}

}  // namespace
}  // namespace heddle::codegen::op_text_simt_test
