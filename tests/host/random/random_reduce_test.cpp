// Tests the generator and the reducer of tools/random/ without a device.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tools/random/bounds.h"
#include "tools/random/case_files.h"
#include "tools/random/reduce.h"
#include "tools/random/run_case.h"

namespace heddle::random::random_reduce_test {
namespace {

TEST(RandomReduce, GeneratorKnowsEveryOp) {
  EXPECT_EQ(unknownRows(), std::vector<std::string_view>{});
}

TEST(RandomReduce, SeedsGiveFixedFusionsThatUseMostOps) {
  std::map<std::string_view, int> seen;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const FusionCase made = randomCase(seed);
    if (seed % 10 == 0) {
      EXPECT_EQ(print(made.fusion), print(randomCase(seed).fusion));
    }
    for (const Expression& expr : made.fusion.exprs()) ++seen[expr.op->name];
  }
  std::vector<std::string_view> missing;
  for (const OpDef& row : opTable()) {
    if (!seen.contains(row.name)) missing.push_back(row.name);
  }
  EXPECT_LE(missing.size() * 20, opTable().size()) << ::testing::PrintToString(missing);
}

// tan(x) has an error. If the error is larger than the divisor, as for 1e-7, the remainder may be
// any value. For 0.25 the error of the remainder is small, except near a jump.
TEST(RandomReduce, RemainderBoundsCoverEveryQuotient) {
  for (const char* op : {"fmod", "remainder"}) {
    FusionBuilder b;
    const ValueId x = b.input("x", DType::F32, {Size(4)});
    const ValueId y = b.pointwise("tan", {x});
    b.output(y);
    for (const double divisor : {1e-7, -1e-7, 0.25}) {
      b.output(b.pointwise(op, {y, b.cast(b.constant(divisor), DType::F32)}));
    }
    const Fusion fusion = std::move(b).build();
    ReferenceInputs inputs;
    HostTensor values(DType::F32, {4});
    for (int i = 0; i < 4; ++i) values.set(i, 0.3 + i * 0.4);
    inputs.tensors[fusion.inputs()[0]] = values;
    const std::vector<Bounded> bounds = evaluateBounded(fusion, inputs, {});
    for (int i = 0; i < 4; ++i) {
      const auto centre = static_cast<float>(toDouble(bounds[0].value.at(i)));
      const auto error = static_cast<float>(bounds[0].errors[static_cast<size_t>(i)]);
      for (float v = centre - error; v <= centre + error; v = std::nextafter(v, 1e9F)) {
        for (size_t k = 1; k < bounds.size(); ++k) {
          const float divisor = k == 1 ? 1e-7F : k == 2 ? -1e-7F : 0.25F;
          float got = std::fmod(v, divisor);
          if (op == std::string("remainder") && got != 0 && (got < 0) != (divisor < 0)) {
            got += divisor;
          }
          const double off = std::fabs(got - toDouble(bounds[k].value.at(i)));
          EXPECT_LE(off, bounds[k].errors[static_cast<size_t>(i)])
              << op << " of " << v << ", " << k;
        }
      }
      EXPECT_LT(bounds[1].errors[static_cast<size_t>(i)], 2.1e-7) << "of the size of the divisor";
      EXPECT_LT(bounds[3].errors[static_cast<size_t>(i)], 2e-4) << "far from a tooth's end";
    }
  }
}

TEST(RandomReduce, BoundsAreExactForIeeeOpsAndUnknownAtJumps) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[4]) { %a = add(%x, 1.0) %b = exp(%x) %c = sub(%b, %b)"
      "  %d = gt(%c, 0.0) %e = gt(%b, 2.0) %f = where(%d, %a, %a) %g = cast(%b, dtype=bf16)"
      "  return %a, %b, %d, %e, %f, %g }");
  ReferenceInputs inputs;
  HostTensor x(DType::F32, {4});
  for (int64_t i = 0; i < 4; ++i) x.set(i, static_cast<double>(i));
  inputs.tensors[ValueId(0)] = x;
  const std::vector<Bounded> out = evaluateBounded(fusion, inputs, {});
  EXPECT_EQ(out[0].errors, std::vector<double>(4, 0));  // one rounding, equal on all devices
  EXPECT_GT(out[1].errors[1], 0);
  EXPECT_LT(out[1].errors[1], 1e-5);
  EXPECT_EQ(out[2].errors, std::vector<double>(4, kUnknown));  // x - x, where x is inexact
  EXPECT_EQ(out[3].errors, std::vector<double>(4, 0));         // no jump is near
  EXPECT_EQ(out[4].errors, std::vector<double>(4, kUnknown));  // the condition is unknown
  EXPECT_EQ(out[5].errors[0], 0);                              // no bf16 boundary is near

  HostTensor got = out[1].value;
  got.data = HostTensor(DType::F32, {4}).data;
  for (int64_t i = 0; i < 4; ++i) got.set(i, out[1].value.at(i));
  EXPECT_EQ(compare(got, out[1]).wrong, 0);
  got.set(2, toDouble(out[1].value.at(2)) * (1 + 1e-5));
  EXPECT_EQ(compare(got, out[1]).wrong, 1);
  EXPECT_EQ(compare(got, out[1]).compared, 4);
}

// Returns whether a reduction reads an op with two operands. The test treats this pattern as the
// fault of a backend.
bool reducesAPair(const FusionCase& fusion_case) {
  const Fusion& fusion = fusion_case.fusion;
  for (const Expression& expr : fusion.exprs()) {
    if (expr.op->kind != OpKind::Reduction) continue;
    const ExprId from = fusion.value(expr.inputs[0]).definition;
    if (from == kNoExpr) continue;
    const OpDef& op = *fusion.expr(from).op;
    if (op.kind == OpKind::Pointwise && op.arity == 2) return true;
  }
  return false;
}

TEST(RandomReduce, FaultIsReducedToTheOpsThatCauseIt) {
  int reduced = 0;
  for (uint64_t seed = 1; seed <= 300 && reduced < 5; ++seed) {
    const FusionCase made = randomCase(seed);
    if (!reducesAPair(made) || made.fusion.exprs().size() < 12) continue;
    ++reduced;
    const FusionCase small = reduce(made, reducesAPair);
    EXPECT_TRUE(reducesAPair(small));
    EXPECT_LE(small.fusion.exprs().size(), 5u)
        << print(small.fusion);  // includes a constant and broadcasts
    EXPECT_EQ(small.fusion.outputs().size(), 1u);
    EXPECT_EQ(small.layouts, denseLayouts(small));
    for (const auto& [symbol, size] : small.sizes) EXPECT_LE(size, 1) << symbol;
    EXPECT_EQ(checkWithoutDevice(small), "") << print(small.fusion);
  }
  EXPECT_GE(reduced, 3);
}

TEST(RandomReduce, WrittenCaseReadsBackUnchanged) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("heddle_random_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const FusionCase made = randomCase(seed);
    const std::string path = (folder / "case").string();
    writeCase(made, path);
    const FusionCase read = readCase(path + ".fusion");
    EXPECT_EQ(read.layouts, made.layouts);
    const std::vector<Bounded> expected = evaluateBounded(made.fusion, made.inputs, made.sizes);
    std::vector<HostTensor> values;
    for (const Bounded& output : evaluateBounded(read.fusion, read.inputs, read.sizes)) {
      values.push_back(output.value);
    }
    EXPECT_EQ(compareAll(made.fusion, values, expected).failure, "") << seed;
    EXPECT_NE(replayCommand(made, path).find("--check=full"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle::random::random_reduce_test
