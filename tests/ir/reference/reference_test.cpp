// Compares the reference evaluator with numbers computed by hand or by plain loops.
#include "ir/reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::reference_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

HostTensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values) {
  HostTensor out(dtype, std::move(sizes));
  for (size_t i = 0; i < values.size(); ++i) out.set(static_cast<int64_t>(i), values[i]);
  return out;
}

std::vector<double> valuesOf(const HostTensor& tensor) {
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.numel(); ++i) out.push_back(toDouble(tensor.at(i)));
  return out;
}

// Runs `fusion f(<inputs>) { <body> }` on the tensors, in the order of the inputs.
std::vector<HostTensor> run(const std::string& inputs, const std::string& body,
                            const std::vector<HostTensor>& tensors) {
  const Fusion fusion = parseFusion("heddle 1 fusion f(" + inputs + ") {" + body + "}");
  ReferenceInputs given;
  std::vector<std::vector<int64_t>> sizes;
  size_t next = 0;
  for (ValueId id : fusion.inputs()) {
    sizes.emplace_back();
    if (fusion.value(id).is_scalar) continue;
    given.tensors[id] = tensors.at(next++);
    sizes.back() = given.tensors[id].sizes;
  }
  return evaluateReference(fusion, given, bindSizes(fusion, sizes));
}

void expectNear(const HostTensor& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < got.numel(); ++i) {
    EXPECT_NEAR(toDouble(got.at(i)), expected[static_cast<size_t>(i)], tolerance) << i;
  }
}

TEST(Reference, EmptyBatchKeepsTheRunningStatistics) {
  const auto out = run("%x: f32[n, 2, 3], %m: f32[2], %v: f32[2]",
                       "%y, %p, %q = batch_norm(%x, %m, %v) return %y, %p, %q",
                       {tensor(DType::F32, {0, 2, 3}, {}), tensor(DType::F32, {2}, {1, 2}),
                        tensor(DType::F32, {2}, {3, 4})});
  EXPECT_EQ(out[0].numel(), 0);
  EXPECT_EQ(valuesOf(out[1]), (std::vector<double>{1, 2}));
  EXPECT_EQ(valuesOf(out[2]), (std::vector<double>{3, 4}));
}

TEST(Reference, BroadcastingMatchesPyTorch) {
  const auto out =
      run("%a: f32[2, 3], %b: f32[3], %c: f32[2, 1]", "%d = add(%a, %b) %e = mul(%d, %c) return %e",
          {tensor(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}), tensor(DType::F32, {3}, {10, 20, 30}),
           tensor(DType::F32, {2, 1}, {1, -1})});
  EXPECT_EQ(out[0].sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{11, 22, 33, -14, -25, -36}));
}

TEST(Reference, EachValueIsRoundedToItsDtype) {
  // In bf16, 256 + 1 is 256 (the tie rounds to even). Subtracting 256 therefore gives 0, not 1.
  const auto out = run("%a: bf16[1]", "%b = add(%a, 1.0) %c = sub(%b, %a) return %c",
                       {tensor(DType::BF16, {1}, {256})});
  EXPECT_EQ(out[0].dtype, DType::BF16);
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{0}));
  // If the other operand is an f32 tensor, an f64 scalar is converted to f32.
  const auto eq = run("%a: f32[1]", "%b = eq(%a, 0.1) return %b", {tensor(DType::F32, {1}, {0.1})});
  EXPECT_EQ(valuesOf(eq[0]), (std::vector<double>{1}));
}

TEST(Reference, IntegersStayExact) {
  HostTensor big(DType::I64, {2});
  big.set(0, (int64_t{1} << 53) + 1);
  big.set(1, int64_t{-5});
  const auto out =
      run("%a: i64[2]", "%b = add(%a, 0) %c = sum(%a, axes=[0]) %d = div(%a, 2) return %b, %c, %d",
          {big});
  EXPECT_EQ(toInt(out[0].at(0)), (int64_t{1} << 53) + 1);
  EXPECT_EQ(toInt(out[1].at(0)), (int64_t{1} << 53) - 4);
  EXPECT_EQ(out[2].dtype, DType::F32);
  EXPECT_EQ(toDouble(out[2].at(1)), -2.5);
}

TEST(Reference, CastsTruncateAndRound) {
  const auto out = run("%a: f32[4]",
                       "%i = cast(%a, dtype=i64) %b = cast(%a, dtype=bool) "
                       "%h = cast(%a, dtype=bf16) return %i, %b, %h",
                       {tensor(DType::F32, {4}, {-1.75, 0, 0.5, 1.00390625})});
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{-1, 0, 0, 1}));
  EXPECT_EQ(valuesOf(out[1]), (std::vector<double>{1, 0, 1, 1}));
  EXPECT_EQ(valuesOf(out[2]), (std::vector<double>{-1.75, 0, 0.5, 1}));
}

TEST(Reference, WhereAndComparisonsHandleNan) {
  const auto out = run("%a: f32[3], %b: f32[3]",
                       "%m = gt(%a, %b) %n = isnan(%a) %o = where(%m, %a, %b) "
                       "%p = where(%n, 7, %o) return %m, %p",
                       {tensor(DType::F32, {3}, {1, 5, kNan}), tensor(DType::F32, {3}, {2, 4, 0})});
  EXPECT_EQ(out[0].dtype, DType::Bool);
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(valuesOf(out[1]), (std::vector<double>{2, 5, 7}));
}

TEST(Reference, ReductionsMatchHandComputedValues) {
  const std::string input = "%a: f32[2, 3, 2]";
  const HostTensor a = tensor(DType::F32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
  const auto out = run(input,
                       "%s = sum(%a, axes=[1]) %t = sum(%a, axes=[0, 2], keepdim=true) "
                       "%m = max(%a, axes=[-1]) %n = min(%a, axes=[0, 1, 2]) "
                       "%p = prod(%a, axes=[0]) return %s, %t, %m, %n, %p",
                       {a});
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{9, 12, -9, -12}));
  EXPECT_EQ(out[1].sizes, (std::vector<int64_t>{1, 3, 1}));
  EXPECT_EQ(valuesOf(out[1]), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(valuesOf(out[2]), (std::vector<double>{2, 4, 6, -1, -3, -5}));
  EXPECT_EQ(out[3].sizes, std::vector<int64_t>{});
  EXPECT_EQ(valuesOf(out[3]), (std::vector<double>{-6}));
  EXPECT_EQ(valuesOf(out[4]), (std::vector<double>{-1, -4, -9, -16, -25, -36}));
}

TEST(Reference, EmptyNanAndBoolReductionsAreDefined) {
  const auto empty =
      run("%a: f32[0, 2]", "%s = sum(%a, axes=[0]) %m = max(%a, axes=[0]) return %s, %m",
          {HostTensor(DType::F32, {0, 2})});
  EXPECT_EQ(valuesOf(empty[0]), (std::vector<double>{0, 0}));
  EXPECT_EQ(valuesOf(empty[1]), (std::vector<double>{-kInf, -kInf}));
  const auto nan = run("%a: f32[3]", "%m = max(%a, axes=[0]) return %m",
                       {tensor(DType::F32, {3}, {1, kNan, 2})});
  EXPECT_TRUE(std::isnan(valuesOf(nan[0])[0]));
  const auto bools =
      run("%a: bool[3]", "%s = sum(%a, axes=[0]) %m = min(%a, axes=[0]) return %s, %m",
          {tensor(DType::Bool, {3}, {1, 0, 1})});
  EXPECT_EQ(bools[0].dtype, DType::I64);
  EXPECT_EQ(valuesOf(bools[0]), (std::vector<double>{2}));
  EXPECT_EQ(valuesOf(bools[1]), (std::vector<double>{0}));
}

TEST(Reference, ViewsMatchHandComputedValues) {
  const HostTensor a = tensor(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto out = run("%a: f32[s, t]",
                       "%p = permute(%a, axes=[1, 0]) %r = reshape(%p, sizes=[s*t]) "
                       "%l = slice(%a, starts=[0, 1], stops=[s, t]) "
                       "%b = broadcast(%r, axes=[0]) %e = expand(%b, sizes=[2, s*t]) "
                       "%q = set(%l) return %p, %r, %l, %e, %q",
                       {a});
  EXPECT_EQ(out[0].sizes, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(valuesOf(out[1]), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(valuesOf(out[2]), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(valuesOf(out[3]), (std::vector<double>{1, 4, 2, 5, 3, 6, 1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(valuesOf(out[4]), (std::vector<double>{2, 3, 5, 6}));
}

TEST(Reference, MatmulMatchesLoops) {
  const int64_t batch = 3, m = 37, k = 29, n = 530;
  const HostTensor a = randomTensor(DType::F32, {batch, m, k}, 1, "a");
  const HostTensor b = randomTensor(DType::F32, {k, n}, 1, "b");
  const HostTensor c = randomTensor(DType::F32, {batch, k, n}, 1, "c");
  const auto out = run("%a: f32[b, m, k], %b: f32[k, n], %c: f32[b, k, n]",
                       "%d = matmul(%a, %b) %e = matmul(%a, %c) return %d, %e", {a, b, c});
  for (int64_t i = 0; i < batch * m * n; ++i) {
    const int64_t p = i / (m * n), row = i / n % m, column = i % n;
    double shared = 0, batched = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double left = a.as<float>()[(p * m + row) * k + j];
      shared += left * b.as<float>()[j * n + column];
      batched += left * c.as<float>()[(p * k + j) * n + column];
    }
    ASSERT_NEAR(out[0].as<float>()[i], shared, 1e-5) << i;
    ASSERT_NEAR(out[1].as<float>()[i], batched, 1e-5) << i;
  }
}

TEST(Reference, IntegerAndEmptyMatmulsAreExact) {
  const auto ints =
      run("%a: i64[2, 2], %b: i64[2, 1]", "%c = matmul(%a, %b) return %c",
          {tensor(DType::I64, {2, 2}, {1, 2, 3, 4}), tensor(DType::I64, {2, 1}, {5, 6})});
  EXPECT_EQ(valuesOf(ints[0]), (std::vector<double>{17, 39}));
  const auto none = run("%a: f32[2, 0], %b: f32[0, 1]", "%c = matmul(%a, %b) return %c",
                        {HostTensor(DType::F32, {2, 0}), HostTensor(DType::F32, {0, 1})});
  EXPECT_EQ(valuesOf(none[0]), (std::vector<double>{0, 0}));
}

// The expected values are the results of torch.nn.functional in float64.
TEST(Reference, CompositesMatchPyTorch) {
  const HostTensor x = tensor(DType::F64, {2, 2}, {0, 1, -1, 2});
  const auto soft =
      run("%x: f64[2, 2]", "%y = softmax(%x) %z = softmax(%x, axis=0) return %y, %z", {x});
  // softmax of (0, d) is 1 / (1 + e^d) and 1 / (1 + e^-d).
  auto logistic = [](double d) { return 1 / (1 + std::exp(-d)); };
  expectNear(soft[0], {logistic(-1), logistic(1), logistic(-3), logistic(3)}, 1e-12);
  expectNear(soft[1], {logistic(1), logistic(-1), logistic(-1), logistic(1)}, 1e-12);
  const auto gelu =
      run("%x: f64[2, 2]", "%y = gelu(%x) %z = gelu(%x, approximate=tanh) return %y, %z", {x});
  expectNear(gelu[0], {0, 0.8413447460685429, -0.15865525393145707, 1.9544997361036416}, 1e-12);
  expectNear(gelu[1], {0, 0.8411919906082768, -0.15880800939172324, 1.954597694087775}, 1e-12);
  const auto gated = run("%x: f64[2, 2]", "%y = swiglu(%x, %x) return %y", {x});
  expectNear(gated[0], {0, logistic(1), logistic(-1), 4 * logistic(2)}, 1e-12);
  // Rows (0, 1) and (-1, 2): deviations 1/2 and 3/2 from their means.
  const auto norm = run("%x: f64[2, 2], %w: f64[2], %b: f64[2]",
                        "%y = layer_norm(%x, %w, %b, eps=0.75) return %y",
                        {x, tensor(DType::F64, {2}, {1, 2}), tensor(DType::F64, {2}, {0, 10})});
  expectNear(norm[0], {-0.5, 11, -1.5 / std::sqrt(3.0), 10 + 3 / std::sqrt(3.0)}, 1e-12);
}

TEST(Reference, ScalarsAndSizesAreEvaluated) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[t], %s: f64 = 2.5, %i: i64) {"
      "%n = size(%x, axis=0) %m = mul(%n, %i) %p = add(%s, %m) %y = mul(%x, %p) return %y, %p }");
  ReferenceInputs inputs;
  inputs.scalars[*fusion.find("i")] = int64_t{3};
  const auto scalars = evaluateScalars(fusion, inputs, {{"t", 4}});
  EXPECT_EQ(scalars.at(*fusion.find("m")), Scalar(int64_t{12}));
  EXPECT_EQ(scalars.at(*fusion.find("p")), Scalar(14.5));
  inputs.tensors[*fusion.find("x")] = tensor(DType::F32, {4}, {1, 2, 3, 4});
  const auto out = evaluateReference(fusion, inputs, {{"t", 4}});
  EXPECT_EQ(valuesOf(out[0]), (std::vector<double>{14.5, 29, 43.5, 58}));
  EXPECT_EQ(out[1].sizes, std::vector<int64_t>{});
  EXPECT_EQ(valuesOf(out[1]), (std::vector<double>{14.5}));
}

TEST(Reference, WrongInputsAreReported) {
  auto errorOf = [](const std::string& inputs, const std::string& body,
                    const std::vector<HostTensor>& tensors) -> std::string {
    try {
      run(inputs, body, tensors);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  const HostTensor two(DType::F32, {2});
  EXPECT_EQ(errorOf("%a: f32[t], %s: f64", "%b = mul(%a, %s) return %b", {two}),
            "scalar input %s has no value and no default");
  EXPECT_EQ(errorOf("%a: f64[t]", "return %a", {two}), "input %a: got f32[2], expected f64[2]");
  EXPECT_EQ(errorOf("%a: f32[t]", "%b = slice(%a, starts=[t - 1], stops=[t + 1]) return %b", {two}),
            "slice that computes %b: axis 0 from 1 to 3 is outside its extent 2");
  EXPECT_NE(errorOf("%a: f32[t], %b: f32[u]", "%c = add(%a, %b) return %c",
                    {two, HostTensor(DType::F32, {3})})
                .find("t = 2 and u = 3 must be equal"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::reference_test
