// Tests matmul and linear: the checks of the builder, axis maps, the reference evaluator and the
// passes.
#include <gtest/gtest.h>

#include "ir/analysis/axis_map.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/passes/pipeline.h"
#include "ir/reference/sparse.h"
#include "tests/ir/graph/matmul_cases.h"
#include "tests/sanitized.h"

namespace heddle::matmul_test {
namespace {

using testing::expectMatmul;
using testing::fusionOf;
using testing::inputsOf;
using testing::MatmulOpCase;
using testing::matmulOpCases;
using testing::nameOf;

template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Matmul, BuilderRefusesMismatchedOperands) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {Size(2), Size(3)});
  const ValueId w = b.input("w", DType::F32, {Size(4), Size(3)});
  const ValueId bias = b.input("bias", DType::F32, {Size(5)});
  const ValueId wide = b.input("wide", DType::F64, {Size(3), Size(3)});
  const ValueId whole = b.input("whole", DType::I64, {Size(3), Size(3)});
  const ValueId batch = b.input("batch", DType::F32, {Size(2), Size(3), Size(3)});
  const ValueId other = b.input("other", DType::F32, {Size(4), Size(3), Size(3)});
  const ValueId point = b.input("point", DType::F32, std::vector<Size>{});
  const auto linear = [&](ValueId weight, std::optional<ValueId> c = {}, ProductOptions o = {}) {
    return refusal([&] { b.linear(x, weight, c, o); });
  };
  EXPECT_EQ(refusal([&] { b.matmul(x, w); }),
            "matmul: shapes disagree, 3 and 4 (axis 1 of %x: f32[2, 3] and axis 0 of %w: f32[4, "
            "3], operands of matmul)");
  EXPECT_EQ(refusal([&] { b.matmul(x, wide); }),
            "matmul: %x: f32[2, 3] and %wide: f64[3, 3] have different dtypes");
  EXPECT_EQ(refusal([&] { b.matmul(x, point); }), "matmul: %point: f32[] needs an axis or more");
  EXPECT_EQ(refusal([&] { b.matmul(batch, other); }),
            "matmul: shapes disagree, 2 and 4 (axis 0 of %batch: f32[2, 3, 3] and axis 0 of "
            "%other: f32[4, 3, 3], operands of matmul)");
  EXPECT_EQ(refusal([&] {
              b.matmul(whole, whole, {"gelu_tanh", "full"});
            }),
            "matmul: activation=gelu_tanh is for float types, %whole: i64[3, 3] is not");
  EXPECT_EQ(refusal([&] {
              b.matmul(wide, wide, {"none", "tf32"});
            }),
            "matmul: precision=tf32 is for f32, %wide: f64[3, 3] is not");
  EXPECT_EQ(linear(b.input("w2", DType::F32, {Size(2), Size(2), Size(3)})),
            "linear: the weight %w2: f32[2, 2, 3] needs two axes, or one without a bias");
  EXPECT_EQ(linear(w, x), "linear: the bias %x: f32[2, 3] needs one axis");
  EXPECT_EQ(linear(w, bias),
            "linear: shapes disagree, 4 and 5 (axis 0 of %w: f32[4, 3] and axis 0 of %bias: "
            "f32[5], operands of linear)");
  EXPECT_EQ(linear(w, {}, {"silu", "full"}),
            "linear: found activation=silu, expected none, relu or gelu_tanh");
  EXPECT_EQ(linear(w, {}, {"none", "fast"}), "linear: found precision=fast, expected full or tf32");
  EXPECT_EQ(refusal([&] { b.apply("linear", {x}); }), "linear takes 2 to 3 operand(s), got 1");
  EXPECT_EQ(refusal([&] { b.apply("matmul", {x, w, x}); }), "matmul takes 2 operand(s), got 3");
}

TEST(Matmul, BuilderChecksFloat8Dtypes) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F8E4M3, {Size(2), Size(3)});
  const ValueId w = b.input("w", DType::F8E5M2, {Size(4), Size(3)});
  const ValueId wide = b.input("wide", DType::F32, {Size(4), Size(3)});
  const ValueId bias = b.input("bias", DType::F32, {Size(4)});
  const auto linear = [&](ValueId a, ValueId c, std::optional<ValueId> d, std::optional<DType> to) {
    return refusal([&] { b.linear(a, c, d, {"none", "full", to}); });
  };
  EXPECT_EQ(linear(x, w, {}, {}),
            "linear: %x: f8e4m3[2, 3] and %w: f8e5m2[4, 3] have different f8 types: set dtype=f32, "
            "bf16 or f16");
  EXPECT_EQ(
      linear(x, x, {}, DType::F64),
      "linear: dtype=f64 of %x: f8e4m3[2, 3]; f32, bf16 and f16 are for operands of f8 types");
  EXPECT_EQ(linear(wide, wide, {}, DType::BF16),
            "linear: dtype=bf16 of %wide: f32[4, 3]; f32, bf16 and f16 are for operands of f8 "
            "types");
  EXPECT_EQ(linear(x, w, bias, DType::BF16),
            "linear: the bf16 result and %bias: f32[4] have different dtypes");
  EXPECT_EQ(linear(x, wide, {}, {}),
            "linear: %x: f8e4m3[2, 3] and %wide: f32[4, 3] have different dtypes");
  EXPECT_EQ(b.fusion().tensor(b.linear(x, w, bias, {"none", "full", DType::F32})).dtype,
            DType::F32);
  EXPECT_EQ(b.fusion().tensor(b.linear(x, x)).dtype, DType::F8E4M3);
}

TEST(Matmul, AxisMapCoversLinearAndBroadcastBatches) {
  FusionBuilder b;
  const Size t = Size::symbol("t"), h = Size::symbol("h"), f = Size::symbol("f");
  const ValueId x = b.input("x", DType::F32, {Size(2), t, h});
  const ValueId w = b.input("w", DType::F32, {f, h});
  const ValueId bias = b.input("bias", DType::F32, {f});
  const ValueId y = b.input("y", DType::F32, {Size(3), Size(1), h, f});
  b.linear(x, w, bias);
  AxisMap map = axisMapOf(b.fusion(), b.fusion().exprs().back());
  EXPECT_EQ(map.inputs, (std::vector<std::vector<int>>{{0, 1, 3}, {2, 3}, {2}}));
  EXPECT_EQ(map.outputs[0], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(map.space[3].kind, IterKind::Reduction);
  b.matmul(x, y);
  map = axisMapOf(b.fusion(), b.fusion().exprs().back());
  EXPECT_EQ(map.inputs, (std::vector<std::vector<int>>{{1, 2, 4}, {0, AxisMap::kNone, 4, 3}}));
}

TEST(Matmul, TextRoundTrips) {
  for (const MatmulOpCase& c : matmulOpCases()) {
    const Fusion fusion = fusionOf(c, DType::F32);
    EXPECT_TRUE(sameGraph(parseFusion(print(fusion)), fusion)) << print(fusion);
  }
}

TEST(Matmul, ReferenceMatchesLoops) {
  int number = 0;
  for (DType dtype :
       {DType::F32, DType::F64, DType::BF16, DType::I64, DType::I32, DType::I8, DType::U8}) {
    for (const MatmulOpCase& c : matmulOpCases()) {
      if (!isFloat(dtype) && c.activation == "gelu_tanh") continue;
      if (number++ % heddle::testing::kOneIn != 0) continue;
      SCOPED_TRACE(std::string(name(dtype)) + " " + nameOf(c));
      const Fusion fusion = fusionOf(c, dtype);
      const std::vector<HostTensor> inputs = inputsOf(fusion);
      ReferenceInputs given;
      for (size_t i = 0; i < inputs.size(); ++i) given.tensors[fusion.inputs()[i]] = inputs[i];
      const HostTensor dense = evaluateReference(fusion, given, {}).at(0);
      expectMatmul(c, inputs, dense, dtype == DType::F64 ? 4 : 0);
      Selection some;
      for (int64_t extent : dense.sizes) {
        std::vector<int64_t> indices;
        for (int64_t i = 0; i < extent; i += 3) indices.push_back(i);
        some.axes.push_back(IndexSet::of(indices));
      }
      const HostTensor sparse = evaluateReferenceAt(fusion, given, {}, {some}).at(0);
      const HostTensor expected = elementsOf(dense, Selection::all(dense.sizes), some);
      ASSERT_EQ(sparse.sizes, expected.sizes);
      for (int64_t i = 0; i < sparse.numel(); ++i) EXPECT_EQ(sparse.at(i), expected.at(i));
    }
  }
}

// The pass splitLinear creates values. Their automatic names must differ from all names in the
// text.
TEST(Matmul, SplitMatmulTakesNoNameFromTheText) {
  for (const char* made : {"matmul(%x, %w, activation=gelu_tanh)", "linear(%x, %w, %b)"}) {
    std::string between, last = "y";
    for (int i = 0; i < 12; ++i) {
      const std::string text = fmt::format(
          "heddle 1 mesh @m = [x=2] fusion f(%x: f32[4, 6] shard(@m, 1: x), %w: f32[6, 6] "
          "shard(@m, {}: x), %b: f32[6]) {{ %y = {} {} %T{} = add(%{}, 1.0) %S{} = relu(%T{}) "
          "return %S{} shard(@m) }}",
          made[0] == 'm' ? 0 : 1, made, between, i + 4, last, i + 5, i + 4, i + 5);
      EXPECT_EQ(refusal([&] { runPasses(parseFusion(text), 2); }), "") << text;
      between += fmt::format(" %z{} = relu(%{})", i, last);
      last = fmt::format("z{}", i);
    }
  }
}

}  // namespace
}  // namespace heddle::matmul_test
