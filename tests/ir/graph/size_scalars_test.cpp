// Tests sizes that contain the values of scalars: which values a run may give to these scalars.
#include "ir/graph/size_scalars.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"

namespace heddle::size_scalars_test {
namespace {

std::string messageOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// Parses a fusion with the inputs of these tests and one output %y.
Fusion fusionOf(const std::string& statements) {
  return parseFusion(
      "heddle 1\nfusion f(%x: f32[t, h], %n: i64, %m: i32, %v: i64[], %s: f64, "
      "%b: bool) {\n" +
      statements + "\n  return %y\n}\n");
}

// Returns the sizes of %y for x[t, h] and these values of %n, %m and %v.
std::vector<int64_t> sizesOf(const Fusion& fusion, int64_t t, int64_t h, int64_t n, int64_t m = 1,
                             int64_t v = 1) {
  const SizeBindings sizes =
      bindSizes(fusion, {{t, h}, {}, {}, {}, {}, {}}, {{"%n", n}, {"%m", m}, {"%v", v}});
  std::vector<int64_t> result;
  for (const Size& size : fusion.tensor(fusion.outputs()[0]).sizes()) {
    result.push_back(size.evaluate(lookupIn(sizes)));
  }
  return result;
}

std::string bindError(const Fusion& fusion, int64_t t, int64_t h, int64_t n, int64_t m = 1) {
  return messageOf([&] { sizesOf(fusion, t, h, n, m); });
}

using Sizes = std::vector<int64_t>;

TEST(SizeScalars, ScalarAndSizeOfOneNameDiffer) {
  EXPECT_FALSE(Size::symbol("n") == Size::symbol(scalarSymbol("n")));
  EXPECT_EQ(Size::symbol(scalarSymbol("0.n")).str(), "%\"0.n\"");
  EXPECT_TRUE((Size::symbol("%n") + 1).hasScalar());
  EXPECT_FALSE((Size::symbol("n") + 1).hasScalar());
}

TEST(SizeScalars, ExpressionsOfScalarsAreSizes) {
  const std::string head = "  %h0 = size(%x, axis=1)\n  %k = ";
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"add(%n, %h0)", 12},    {"sub(%n, 2)", 5},          {"mul(%n, %m)", 21},
      {"div_floor(%n, 2)", 3}, {"remainder(%n, 4)", 3},    {"minimum(%n, %h0)", 5},
      {"maximum(%n, 9)", 9},   {"clamp(%n, 0, 6)", 6},     {"abs(%n)", 7},
      {"neg(%n)", -7},         {"cast(%m, dtype=i64)", 3},
  };
  for (const auto& [text, expected] : cases) {
    const Fusion fusion = fusionOf(head + text + "\n  %y = full(1.0, sizes=[%k + 8], dtype=f32)");
    EXPECT_EQ(sizesOf(fusion, 4, 5, 7, 3), (Sizes{expected + 8})) << text;
  }
  const Fusion of_tensor = fusionOf("  %k = add(%v, 1)\n  %y = iota(sizes=[2*%k], axis=0)");
  EXPECT_EQ(sizesOf(of_tensor, 1, 1, 1, 1, 3), (Sizes{8}));
}

// The expected sizes are the results of NumPy for arrays of t x h elements.
TEST(SizeScalars, ReshapeResolvesMinusOne) {
  const Fusion open = fusionOf("  %y = reshape(%x, sizes=[%n, -1])");
  EXPECT_EQ(sizesOf(open, 6, 4, 8), (Sizes{8, 3}));
  EXPECT_EQ(sizesOf(open, 6, 4, 24), (Sizes{24, 1}));
  const Fusion both = fusionOf("  %y = reshape(%x, sizes=[%n, 2, %m])");
  EXPECT_EQ(sizesOf(both, 6, 4, 4, 3), (Sizes{4, 2, 3}));
  EXPECT_EQ(sizesOf(both, 6, 4, -1, 3), (Sizes{4, 2, 3}));
  EXPECT_EQ(sizesOf(both, 6, 4, 4, -1), (Sizes{4, 2, 3}));
  const Fusion flat = fusionOf("  %y = reshape(%x, sizes=[%n])");
  EXPECT_EQ(sizesOf(flat, 6, 4, -1), (Sizes{24}));
  EXPECT_EQ(sizesOf(flat, 0, 4, 0), (Sizes{0}));
}

TEST(SizeScalars, InvalidReshapesNameTheOpAndTheScalar) {
  const Fusion open = fusionOf("  %y = reshape(%x, sizes=[%n, -1])");
  EXPECT_EQ(bindError(open, 6, 4, 5),
            "elements of %x: f32[t, h] before and after reshape at line 3: t*h = 24 is not a "
            "multiple of %n = 5, so the size -1 has no value (t = 6 is axis 0 of %x, h = 4 is axis "
            "1 of %x, %n = 5 is input %n)");
  EXPECT_EQ(bindError(open, 6, 4, -1),
            "size 0 of reshape at line 3, which has another size -1: %n is -1, expected 0 or more "
            "(%n = -1 is input %n)");
  EXPECT_EQ(bindError(open, 6, 4, 0),
            "elements of %x: f32[t, h] before and after reshape at line 3: %n is 0, so the "
            "size -1 beside it could be any size (t = 6 is axis 0 of %x, h = 4 is axis 1 of %x, %n "
            "= 0 is input %n)");
  const Fusion both = fusionOf("  %y = reshape(%x, sizes=[%n, %m])");
  EXPECT_EQ(bindError(both, 6, 4, -1, -1),
            "reshape at line 3: 2 of the sizes %n, %m are -1, expected at most 1 (%n = -1 is input "
            "%n, %m = -1 is input %m)");
  EXPECT_EQ(bindError(both, 6, 4, -3, 2),
            "size 0 of reshape at line 3: %n is -3, expected -1 or more (%n = -3 is input %n)");
  EXPECT_NE(bindError(both, 0, 4, -1, 0).find("%m is 0, so the size -1 beside it"),
            std::string::npos);
  EXPECT_NE(bindError(both, 6, 4, 5, 5).find("t*h = 24 and %n*%m = 25 must be equal"),
            std::string::npos);
  EXPECT_NE(bindError(both, 6, 4, -1, 5).find("t*h = 24 is not a multiple of %m = 5"),
            std::string::npos);
}

TEST(SizeScalars, ExpandKeepsTheExtentForMinusOne) {
  const Fusion fusion =
      fusionOf("  %r = sum(%x, axes=[0], keepdim=true)\n  %y = expand(%r, sizes=[%n, %m])");
  EXPECT_EQ(sizesOf(fusion, 6, 4, 3, 4), (Sizes{3, 4}));
  EXPECT_EQ(sizesOf(fusion, 6, 4, -1, -1), (Sizes{1, 4}));
  EXPECT_NE(bindError(fusion, 6, 4, 3, 5).find("axis 1 of %r: f32[1, h] and its size in expand"),
            std::string::npos);
  const Fusion front = fusionOf("  %y = expand(%x, sizes=[%n, t, h])");
  EXPECT_EQ(sizesOf(front, 6, 4, 3), (Sizes{3, 6, 4}));
  EXPECT_EQ(bindError(front, 6, 4, -1),
            "size 0 of expand at line 3: %n is -1, expected 0 or more (%n = -1 is input %n)");
}

// Only a constant or the value of a scalar may be -1. The value of an expression is a size.
TEST(SizeScalars, NegativeExpressionIsNoOpenSize) {
  const Fusion reshaped = fusionOf("  %y = reshape(%x, sizes=[%n - 3, t])");
  EXPECT_EQ(sizesOf(reshaped, 4, 6, 9), (Sizes{6, 4}));
  EXPECT_EQ(bindError(reshaped, 4, 6, 2),
            "size 0 of reshape at line 3: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
  EXPECT_EQ(bindError(reshaped, 4, 6, 1),
            "size 0 of reshape at line 3: %n - 3 is -2, expected 0 or more (%n = 1 is input %n)");
  const Fusion computed = fusionOf("  %k = sub(%n, 3)\n  %y = reshape(%x, sizes=[%k, t])");
  EXPECT_EQ(sizesOf(computed, 4, 6, 9), (Sizes{6, 4}));
  EXPECT_EQ(bindError(computed, 4, 6, 2),
            "size 0 of reshape at line 4: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
  // The scalar %m may be -1, even if another size is an expression.
  const Fusion mixed = fusionOf("  %y = reshape(%x, sizes=[%n - 3, %m])");
  EXPECT_EQ(sizesOf(mixed, 4, 6, 9, 4), (Sizes{6, 4}));
  EXPECT_EQ(sizesOf(mixed, 4, 6, 9, -1), (Sizes{6, 4}));
  EXPECT_EQ(bindError(mixed, 4, 6, 2, 24),
            "size 0 of reshape at line 3: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
  // If both sizes are negative, their product can equal the number of elements. The run must refuse
  // them anyway.
  const Fusion squares = fusionOf(
      "  %z = full(1.0, sizes=[(%n - 3)*(%m - 3)], dtype=f32)\n"
      "  %y = reshape(%z, sizes=[%n - 3, %m - 3])");
  EXPECT_EQ(sizesOf(squares, 1, 1, 5, 7), (Sizes{2, 4}));
  EXPECT_NE(bindError(squares, 1, 1, 2, 1).find("size 0 of reshape at line 4: %n - 3 is -1"),
            std::string::npos);
}

TEST(SizeScalars, NegativeExpressionIsNoKeptExtent) {
  const std::string row = "  %r = sum(%x, axes=[0], keepdim=true)\n";
  const Fusion fusion = fusionOf(row + "  %y = expand(%r, sizes=[%n - 3, %m - 3])");
  EXPECT_EQ(sizesOf(fusion, 6, 4, 8, 7), (Sizes{5, 4}));
  EXPECT_EQ(bindError(fusion, 6, 4, 2, 7),
            "size 0 of expand at line 4: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
  EXPECT_EQ(bindError(fusion, 6, 4, 8, 2),
            "size 1 of expand at line 4: %m - 3 is -1, expected 0 or more (%m = 2 is input %m)");
  const Fusion front = fusionOf("  %y = expand(%x, sizes=[%n - 3, -1, -1])");
  EXPECT_EQ(sizesOf(front, 6, 4, 5), (Sizes{2, 6, 4}));
  EXPECT_EQ(bindError(front, 6, 4, 2),
            "size 0 of expand at line 3: %n - 3 is -1, expected 0 or more (%n = 2 is input %n)");
}

TEST(SizeScalars, BoundsAndWidthsAreChecked) {
  const Fusion slice = fusionOf("  %y = slice(%x, starts=[%n, 0], stops=[%m, h])");
  EXPECT_EQ(sizesOf(slice, 6, 4, 1, 5), (Sizes{4, 4}));
  EXPECT_NE(bindError(slice, 6, 4, 3, 2)
                .find("the range of axis 0 of %x: f32[t, h] in slice at line "
                      "3: %n = 3 must be at most %m = 2"),
            std::string::npos);
  EXPECT_NE(bindError(slice, 6, 4, -1, 2).find("the start of axis 0"), std::string::npos);
  EXPECT_NE(bindError(slice, 6, 4, 0, 7).find("the stop of axis 0"), std::string::npos);
  const Fusion pad = fusionOf("  %y = pad(%x, lows=[%n, 0], highs=[0, %m])");
  EXPECT_EQ(sizesOf(pad, 6, 4, -2, 3), (Sizes{4, 7}));
  EXPECT_NE(bindError(pad, 6, 4, -7, 0).find("axis 0 of %x: f32[t, h] after pad at line 3"),
            std::string::npos);
  const Fusion repeat = fusionOf("  %y = repeat(%x, repeats=[%n, 1])");
  EXPECT_EQ(sizesOf(repeat, 6, 4, 3), (Sizes{18, 4}));
  EXPECT_NE(bindError(repeat, 6, 4, -1).find("the repeats of axis 0 in repeat at line 3: %n is -1"),
            std::string::npos);
  const Fusion full = fusionOf("  %y = full(1.0, sizes=[%n, %m], dtype=f32)");
  EXPECT_EQ(bindError(full, 1, 1, -2),
            "size 0 of full at line 3: %n is -2, expected 0 or more (%n = -2 is input %n)");
  EXPECT_NE(bindError(full, 1, 1, int64_t{1} << 40, 1 << 30)
                .find("bytes of the result of full at line 3: size '4*%n*%m' overflows 64 bits"),
            std::string::npos);
}

TEST(SizeScalars, ScalarMayHaveToEqualASize) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[n, 2], %n: i64 == n, %w: f32[%n]) {\n  %y = iota(sizes=[%n], "
      "axis=0)\n  return %y\n}\n");
  EXPECT_NE(print(fusion).find("%n: i64 == n"), std::string::npos);
  EXPECT_TRUE(sameGraph(fusion, parseFusion(print(fusion))));
  const auto bind = [&](int64_t rows, int64_t n, int64_t w) {
    return messageOf([&] { bindSizes(fusion, {{rows, 2}, {}, {w}}, {{"%n", n}}); });
  };
  EXPECT_EQ(bind(3, 3, 3), "no error");
  EXPECT_EQ(
      bind(3, 4, 4),
      "the scalar input %n: %n = 4 and n = 3 must be equal (%n = 4 is input %n, n = 3 is axis "
      "0 of %x)");
  EXPECT_EQ(bind(3, 3, 5), "size '%n' is 3 from input %n but 5 from axis 0 of %w");
}

// A pass may copy an op, and a parser may read a printed op. Neither must resolve -1 again.
TEST(SizeScalars, ResolvedSizesStayAsTheyAre) {
  for (const char* statements :
       {"  %y = reshape(%x, sizes=[%n, -1])", "  %y = reshape(%x, sizes=[%n, %m])",
        "  %y = reshape(%x, sizes=[%n])", "  %y = expand(%x, sizes=[%n, %m, -1])",
        "  %y = reshape(%x, sizes=[%n - 3, %m])", "  %y = reshape(%x, sizes=[%n - 3, %m + 1])",
        "  %y = expand(%x, sizes=[%n - 3, %m - 3, -1])",
        "  %z = full(1.0, sizes=[%n*%m], dtype=f32)\n  %y = reshape(%z, sizes=[%n, %m])",
        "  %y = repeat(%x, repeats=[%n, %m])", "  %y = pad(%x, lows=[%n, 0], highs=[0, 1])",
        "  %z = full(1.0, sizes=[%n, 1, 4], dtype=f32)\n  %y = squeeze(%z)",
        "  %z = full(1.0, sizes=[%n, 3, %m], dtype=f32)\n  %y = flatten(%z)"}) {
    const Fusion fusion = fusionOf(statements);
    EXPECT_NO_THROW(verify(fusion)) << statements;
    const std::string text = print(fusion);
    EXPECT_EQ(print(parseFusion(text)), text);
    EXPECT_TRUE(sameGraph(fusion, parseFusion(text))) << text;
  }
}

TEST(SizeScalars, BuilderAcceptsTheSameSizes) {
  FusionBuilder b("f");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("t"), Size::symbol("h")});
  const ValueId n = b.scalarInput("n", DType::I64);
  const Size size = b.sizeFrom(b.pointwise("add", {n, b.sizeOf(x, 1)}));
  EXPECT_EQ(size.str(), "%n + h");
  b.output(b.name("y").reshape(x, {size, Size(-1)}));
  b.output(b.name("z").reshape(x, {size - Size::symbol("t"), Size::symbol("t")}));
  b.requireEqual(n, Size::symbol("t"));
  const Fusion fusion = std::move(b).build();
  EXPECT_EQ(scalarSymbols(fusion), (std::set<std::string>{"%n"}));
  EXPECT_NO_THROW(bindSizes(fusion, {{6, 6}, {}}, {{"%n", 6}}));
  const auto negative = [&] { bindSizes(fusion, {{6, 0}, {}}, {{"%n", 5}}); };
  EXPECT_EQ(messageOf(negative),
            "size 0 of reshape: %n + h - t is -1, expected 0 or more (%n = 5 is input %n, h = 0 is "
            "axis 1 of %x, t = 6 is axis 0 of %x)");
  EXPECT_THROW(bindSizes(fusion, {{6, 6}, {}}, {{"%n", 7}}), UserError);
}

}  // namespace
}  // namespace heddle::size_scalars_test
