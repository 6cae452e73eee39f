// Tests matmul and linear: dtypes, axis maps, the reference evaluator and the passes.
// tests/text/verify/op_matmul.txt contains the errors.
#include <gtest/gtest.h>

#include "ir/analysis/axis_map.h"
#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/passes/pipeline.h"
#include "ir/reference/sparse.h"
#include "tests/ir/graph/matmul_cases.h"
#include "tests/sanitized.h"

namespace heddle::builder_matmul_test {
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

TEST(BuilderMatmul, Float8MatmulsHaveTheStatedDtypeOrThatOfTheOperands) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F8E4M3, {Size(2), Size(3)});
  const ValueId w = b.input("w", DType::F8E5M2, {Size(4), Size(3)});
  const ValueId bias = b.input("bias", DType::F32, {Size(4)});
  EXPECT_EQ(b.fusion().tensor(b.linear(x, w, bias, {"none", "full", DType::F32})).dtype,
            DType::F32);
  EXPECT_EQ(b.fusion().tensor(b.linear(x, x)).dtype, DType::F8E4M3);
}

TEST(BuilderMatmul, AxisMapCoversLinearAndBroadcastBatches) {
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

TEST(BuilderMatmul, TextRoundTrips) {
  for (const MatmulOpCase& c : matmulOpCases()) {
    const Fusion fusion = fusionOf(c, DType::F32);
    EXPECT_TRUE(sameGraph(parseFusion(print(fusion)), fusion)) << print(fusion);
  }
}

TEST(BuilderMatmul, ReferenceMatchesLoops) {
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
TEST(BuilderMatmul, SplitMatmulTakesNoNameFromTheText) {
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
}  // namespace heddle::builder_matmul_test
