// Checks that parse() inverts print() for fusions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "ir/composite/composite.h"
#include "ir/graph/print_values.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::print_fusion_round_trip_test {
namespace {

void expectRoundTrip(const Fusion& fusion) {
  const std::string text = print(fusion);
  const Fusion again = parseFusion(text, "printed");
  EXPECT_TRUE(sameGraph(fusion, again)) << text << print(again);
  EXPECT_EQ(print(again), text);
  verify(again);
}

// Requires that `body` is exactly what print() writes.
void expectStable(const std::string& body) {
  const std::string text = "heddle 1\n" + body;
  const Fusion fusion = parseFusion(text, "t");
  EXPECT_EQ(print(fusion), text);
  expectRoundTrip(fusion);
}

std::filesystem::path examples() {
  const char* root = std::getenv("HEDDLE_SOURCE_DIR");
  return std::filesystem::path(root == nullptr ? "." : root) / "examples";
}

TEST(PrintFusionRoundTrip, ExamplesParseToTheSameFusion) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(examples())) {
    if (entry.path().extension() != ".fusion") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    SCOPED_TRACE(entry.path().string());
    expectRoundTrip(parseFusion(text.str(), entry.path().string()));
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(PrintFusionRoundTrip, MainExampleKeepsItsNamesAndOrder) {
  std::ifstream file(examples() / "gelu_backward_bias_grad.fusion");
  std::stringstream text;
  text << file.rdbuf();
  // Except for its comment, the file is exactly what print() writes.
  const std::string body = text.str().substr(text.str().find("heddle 1"));
  EXPECT_EQ(print(parseFusion(text.str())), body);
}

TEST(PrintFusionRoundTrip, ShardingsAndMeshesPrintUnchanged) {
  expectStable(
      "mesh @m = [y=2, x=4]\n"
      "mesh @n = [x=2] ranks=[1, 3]\n"
      "mesh @job = [z=2, y=ranks, x=2]\n"
      "fusion f(\n"
      "    %a: f32[t, h] shard(@m, 0: [y, x]),\n"
      "    %b: bf16[t, h] inferred shard(@n, 1: x),\n"
      "    %c: f64[t] shard(@job) partial(sum: x, max: y) stream(0: 4),\n"
      "    %d: i64[] shard(@m)) {\n"
      "  %e = relu(%a) inferred shard(@m) partial(avg: x)\n"
      "  %f = set(%e) shard(@m, 0: x, 1: y)\n"
      "  return %f, %c\n"
      "}\n");
}

TEST(PrintFusionRoundTrip, LayoutsPrintUnchanged) {
  expectStable(
      "fusion f(%a: f32[n, c, h, w] order=[0, 2, 3, 1] contiguous=[true, true, true, false]) {\n"
      "  %b = relu(%a) order=[0, 2, 3, 1]\n"
      "  %c = relu(%b) hinted order=[3, 2, 1, 0]\n"
      "  %d = relu(%c) needed order=[3, 2, 1, 0]\n"
      "  return %b, %c order=[0, 1, 2, 3], %c order=[1, 0, 2, 3], %d\n"
      "}\n");
}

TEST(PrintFusionRoundTrip, SizesAndAttributesPrintUnchanged) {
  expectStable(
      "fusion f(%a: f32[2*t, ceildiv(h, 4), 1], %b: bool[max(t, 3), broadcast(1)])\n"
      "    with t = 8, h = 0 {\n"
      "  %c = reshape(%a, sizes=[2*t*ceildiv(h, 4)])\n"
      "  %d = slice(%a, starts=[0, 0, 0], stops=[t, min(h, 2), 1])\n"
      "  %e = permute(%d, axes=[2, 0, 1])\n"
      "  %f = sum(%e, axes=[0, 1], keepdim=true)\n"
      "  %g = expand(%b, sizes=[max(t, 3), (t + 1) % 7])\n"
      "  %h = cast(%g, dtype=bf16)\n"
      "  %i = size(%a, axis=1)\n"
      "  %j = broadcast(%c, axes=[0, 2])\n"
      "  %k = slice(%c, starts=[floordiv(t, 2)], stops=[t - (h - 1)])\n"
      "  return %f, %h, %i, %j, %k\n"
      "}\n");
}

TEST(PrintFusionRoundTrip, ScalarsPrintShortestAndExact) {
  EXPECT_EQ(printScalar(0.1), "0.1");
  EXPECT_EQ(printScalar(1.0), "1.0");
  EXPECT_EQ(printScalar(-0.0), "-0.0");
  EXPECT_EQ(printScalar(1e300), "1e+300");
  EXPECT_EQ(printScalar(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(printScalar(5e-324), "5e-324");
  EXPECT_EQ(printScalar(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(printScalar(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(printScalar(int64_t{-3}), "-3");
  EXPECT_EQ(printScalar(true), "true");
  const char* written[] = {"0.5",  "-0.0",   "1e+300", "-inf", "inf",  "nan",
                           "true", "5e-324", "-7",     "2",    "false"};
  for (std::string value : written) {
    const std::string text =
        "heddle 1\nfusion f() {\n  %c = constant(" + value + ")\n  return %c\n}\n";
    EXPECT_EQ(print(parseFusion(text)), text);
  }
}

TEST(PrintFusionRoundTrip, LiteralsBecomeConstantsWithUnusedNames) {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[t]) { %y = mul(0.5, %x) %S1 = add(%y, 2) return %S1 }");
  EXPECT_EQ(print(fusion),
            "heddle 1\n"
            "fusion f(%x: f32[t]) {\n"
            "  %S1_1 = constant(0.5)\n"
            "  %y = mul(%S1_1, %x)\n"
            "  %S3 = constant(2)\n"
            "  %S1 = add(%y, %S3)\n"
            "  return %S1\n"
            "}\n");
}

TEST(PrintFusionRoundTrip, LastOpOfACompositeTakesTheStatementName) {
  const Fusion fusion =
      parseFusion("heddle 1 fusion f(%g: f32[t], %u: f32[t]) { %y = swiglu(%g, %u) return %y }");
  EXPECT_EQ(print(fusion),
            "heddle 1\n"
            "fusion f(%g: f32[t], %u: f32[t]) {\n"
            "  %y_1 = silu(%g)\n"
            "  %y = mul(%y_1, %u)\n"
            "  return %y\n"
            "}\n");
}

// The end of the last piece must be limited. Otherwise it would be 2^63, which does not fit into 64
// bits.
TEST(PrintFusionRoundTrip, PiecesOfTheLargestExtentParse) {
  expectRoundTrip(
      parseFusion("heddle 1 fusion f(%x: i8[9223372036854775807]) {\n"
                  "  %a, %b = chunk(%x, chunks=2)\n  return %a, %b\n}\n"));
}

TEST(PrintFusionRoundTrip, AutomaticNamesAvoidLaterNames) {
  // The automatic name of the broadcast of %b would be %T2, but a later result already has this
  // name.
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%a: f32[t, h], %b: f32[h]) {"
      "%T4 = add(%a, %b) %T2 = relu(%T4) return %T2 }");
  EXPECT_EQ(fusion.values().size(), 5u);
  expectRoundTrip(fusion);
}

TEST(PrintFusionRoundTrip, ShardingOnTheReturnMovesToTheStatement) {
  const Fusion fusion = parseFusion(
      "heddle 1 mesh @m = [x=2] fusion f(%a: f32[t]) {"
      " %b: f32[t] = relu(%a) return %b partial(sum: x) }");
  EXPECT_TRUE(fusion.value(ValueId(1)).user_sharding);
  EXPECT_NE(print(fusion).find("%b = relu(%a) shard(@m) partial(sum: x)\n"), std::string::npos);
}

TEST(PrintFusionRoundTrip, FusionBuiltInCppParsesToTheSameFusion) {
  FusionBuilder b("built");
  const MeshId mesh = b.mesh({"m", {{MeshAxis::X, 2}}, {}});
  ValueId x = b.input("x", DType::BF16, {Size::symbol("t"), Size(1)});
  ValueId s = b.scalarInput("0.s", DType::I64, int64_t{3});
  ValueId y = b.pointwise("mul", {x, s});
  Sharding sharding;
  sharding.mesh = mesh;
  sharding.axes = {{MeshAxis::X}, {}};
  b.shard(y, sharding);
  b.output(b.reduce("max", y, {-2}, true));
  expectRoundTrip(std::move(b).build());
}

// topk and glu add guards for their sizes. The printed ops do not imply these guards, so the text
// contains them.
TEST(PrintFusionRoundTrip, GuardsOfCompositeOpsAreKept) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[t, h], %k: i64) {\n"
      "  %v, %i = topk(%x, k=%k, axis=1, most=3)\n  %g = glu(%x, axis=1)\n"
      "  return %v, %i, %g\n}\n");
  const std::string text = print(fusion);
  expectRoundTrip(fusion);
  const Fusion again = parseFusion(text);
  const auto contains = [](const std::vector<SizeGuard>& guards, const SizeGuard& one) {
    return std::any_of(guards.begin(), guards.end(), [&](const SizeGuard& other) {
      return other.a == one.a && other.b == one.b && other.at_most == one.at_most;
    });
  };
  for (const SizeGuard& guard : fusion.guards) {
    EXPECT_TRUE(contains(again.guards, guard)) << guard.source << "\n" << text;
  }
  EXPECT_NE(text.find("  guard %k <= 3 \"k and its bound `most` of topk at line 3\"\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("guard", text.find("\n  %")), std::string::npos) << text;
}

TEST(PrintFusionRoundTrip, ChainOfTenThousandOpsParsesToTheSameFusion) {
  FusionBuilder b("chain");
  ValueId value = b.input("x", DType::F32, {Size::symbol("t")});
  for (int i = 0; i < 10000; ++i) value = b.pointwise("relu", {value});
  b.output(value);
  expectRoundTrip(std::move(b).build());
}

}  // namespace
}  // namespace heddle::print_fusion_round_trip_test
