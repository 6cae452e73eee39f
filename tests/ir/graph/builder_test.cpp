// Compares the dtype and shape rules of the builder with rules of PyTorch that are written out by
// hand.
#include "ir/graph/builder.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"

namespace heddle::builder_test {
namespace {

const Size t = Size::symbol("t");
const Size h = Size::symbol("h");

std::string messageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// C++ could take a list of two string literals as a pair of iterators of one string. It must become
// two sizes.
TEST(Builder, TwoTextsAreTwoSizes) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {"t", "h"});
  const std::vector<IterDomain>& domain = b.fusion().tensor(x).domain;
  ASSERT_EQ(domain.size(), 2);
  EXPECT_EQ(domain[0].extent, t);
  EXPECT_EQ(domain[1].extent, h);
}

TEST(Builder, PromotionMatchesPyTorch) {
  FusionBuilder b;
  const ValueId f32 = b.input("f32", DType::F32, {t});
  const ValueId bf16 = b.input("bf16", DType::BF16, {t});
  const ValueId i64 = b.input("i64", DType::I64, {t});
  const ValueId flag = b.input("flag", DType::Bool, {t});
  const ValueId s = b.scalarInput("s", DType::F64);
  const ValueId n = b.scalarInput("n", DType::I64);
  auto type = [&](const char* op, std::vector<ValueId> in) {
    return b.fusion().tensor(b.pointwise(op, std::move(in))).dtype;
  };
  EXPECT_EQ(type("mul", {f32, s}), DType::F32);
  EXPECT_EQ(type("mul", {bf16, s}), DType::BF16);
  EXPECT_EQ(type("mul", {i64, s}), DType::F32);
  EXPECT_EQ(type("mul", {flag, n}), DType::I64);
  EXPECT_EQ(type("add", {bf16, f32}), DType::F32);
  EXPECT_EQ(type("add", {i64, bf16}), DType::BF16);
  EXPECT_EQ(type("div", {i64, i64}), DType::F32);
  EXPECT_EQ(type("exp", {i64}), DType::F32);
  EXPECT_EQ(type("lt", {i64, s}), DType::Bool);
  EXPECT_EQ(type("where", {flag, i64, f32}), DType::F32);
  EXPECT_EQ(type("mul", {s, n}), DType::F64);
  EXPECT_EQ(b.fusion().tensor(b.reduce("sum", flag, {0})).dtype, DType::I64);
  EXPECT_EQ(b.fusion().tensor(b.reduce("max", flag, {0})).dtype, DType::Bool);
}

TEST(Builder, BroadcastingMatchesPyTorch) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t, h});
  const ValueId row = b.input("row", DType::F32, {h});
  const ValueId column = b.input("column", DType::F32, {t, Size(1)});
  EXPECT_EQ(b.fusion().tensor(b.pointwise("add", {x, row})).sizes(), (std::vector<Size>{t, h}));
  EXPECT_EQ(b.fusion().tensor(b.pointwise("add", {column, row})).sizes(),
            (std::vector<Size>{t, h}));
  EXPECT_TRUE(b.fusion().guards.empty());
  const ValueId other = b.input("other", DType::F32, {Size::symbol("u"), h});
  b.line(7).pointwise("add", {x, other});
  ASSERT_EQ(b.fusion().guards.size(), 1u);
  EXPECT_EQ(b.fusion().guards[0].source,
            "axis 0 of %x: f32[t, h] and of %other: f32[u, h], operands of add at line 7");
}

TEST(Builder, FailedGuardsNameBothTensors) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t});
  const ValueId y = b.input("y", DType::F32, {h});
  b.output(b.pointwise("add", {x, y}));
  const Fusion fusion = std::move(b).build();
  EXPECT_NO_THROW(bindSizes(fusion, {{3}, {3}}));
  EXPECT_EQ(
      messageOf([&] {
        bindSizes(fusion, {{3}, {4}});
      }),
      "axis 0 of %x: f32[t] and of %y: f32[h], operands of add: t = 3 and h = 4 must be equal");
}

// A symbol that occurs only in sums and products of sizes is solved when the other symbols are
// known.
TEST(Builder, SymbolsOfCompositeExtentsAreSolved) {
  FusionBuilder b;
  const Size w = Size::symbol("w"), k = Size::symbol("k");
  b.output(b.input("x", DType::F32, {t * w + 1, t, w * k - t}));
  const Fusion fusion = std::move(b).build();
  EXPECT_EQ(bindSizes(fusion, {{13, 3, 5}}), (SizeBindings{{"t", 3}, {"w", 4}, {"k", 2}}));
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{12, 3, 5}, {13, 3, 6}, {1, 0, 0}}) {
    EXPECT_NE(messageOf([&] { bindSizes(fusion, {sizes}); }), "no error") << str(sizes);
  }
}

TEST(Builder, SymbolWithTwoValuesIsRefused) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t});
  const ValueId y = b.input("y", DType::F32, {t});
  b.output(b.pointwise("add", {x, y}));
  const Fusion fusion = std::move(b).build();
  EXPECT_EQ(messageOf([&] {
              bindSizes(fusion, {{3}, {4}});
            }),
            "size 't' is 3 from axis 0 of %x but 4 from axis 0 of %y");
}

TEST(Builder, WrongCallsAreRefused) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {Size(2), Size(3)});
  const ValueId y = b.input("y", DType::F32, {Size(2), Size(4)});
  b.line(3);
  EXPECT_EQ(messageOf([&] {
              b.pointwise("add", {x, y});
            }),
            "add at line 3: shapes disagree, 3 and 4 (axis 1 of %x: f32[2, 3] and of %y: f32[2, "
            "4], operands of add at line 3)");
  EXPECT_EQ(messageOf([&] { b.pointwise("add", {x}); }), "add at line 3 takes 2 operand(s), got 1");
  EXPECT_EQ(messageOf([&] {
              b.pointwise("adx", {x, y});
            }),
            "there is no op 'adx'; the nearest name is 'add'");
  EXPECT_EQ(messageOf([&] { b.reduce("sum", x, {2}); }),
            "sum at line 3: axis 2 is out of range for 2 axes");
  EXPECT_EQ(messageOf([&] { b.matmul(x, y); }),
            "matmul at line 3: shapes disagree, 3 and 2 (axis 1 of %x: f32[2, 3] and axis 0 of %y: "
            "f32[2, 4], operands of matmul at line 3)");
  EXPECT_EQ(messageOf([&] { b.reshape(x, {Size(7)}); }),
            "reshape at line 3: %x: f32[2, 3] has 6 elements, the new shape has 7");
  EXPECT_EQ(messageOf([&] { b.apply("cast", {x}, {}); }),
            "cast at line 3: attribute 'dtype' is missing (a dtype)");
  EXPECT_EQ(messageOf([&] { b.name("x"); }), "value %x is defined twice");
}

TEST(Builder, WrongShardingsAreRefused) {
  FusionBuilder b;
  const MeshId m = b.mesh({"m", {{MeshAxis::X, 2}}, {}});
  const ValueId x = b.input("x", DType::F32, {t, h});
  EXPECT_EQ(messageOf([&] {
              b.shard(x, {m, {{MeshAxis::X}, {MeshAxis::X}}, {}, {}});
            }),
            "%x: f32[t, h]: mesh axis x is used twice in shard(@m, 0: x, 1: x)");
  EXPECT_EQ(messageOf([&] {
              b.shard(x, {m, {{MeshAxis::Y}}, {}, {}});
            }),
            "%x: f32[t, h]: mesh @m = [x=2] has no axis y");
  b.shard(x, {m, {{MeshAxis::X}}, {}, {}});
  EXPECT_EQ(messageOf([&] {
              b.shard(x, {m, {{}, {MeshAxis::X}}, {}, {}});
            }),
            "%x: f32[t, h] is sharded twice: shard(@m, 0: x) and shard(@m, 1: x)");
}

TEST(Builder, AnnotationsAreCopiedAndStaleIdsFound) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t});
  b.output(b.pointwise("neg", {x}));
  Fusion fusion = std::move(b).build();
  fusion.annotate<ValueId>("hot", x,
                           [](const ValueId& id, const Fusion::IdMap& map) { return map(id); });
  fusion.annotate<std::string>("note", "hello");
  const Fusion copy = fusion;
  EXPECT_EQ(copy.annotation<ValueId>("hot"), x);
  EXPECT_EQ(copy.annotation<std::string>("note"), "hello");
  EXPECT_EQ(copy.annotation<int>("note"), std::nullopt);
  Fusion rebuilt;
  rebuilt.inheritAnnotations(copy, [](ValueId) { return std::optional<ValueId>(5); });
  EXPECT_EQ(rebuilt.annotation<ValueId>("hot"), ValueId(5));
  EXPECT_EQ(rebuilt.staleAnnotations(), std::vector<std::string>{"hot"});
  fusion.dropAnnotation("note");
  EXPECT_EQ(fusion.annotation<std::string>("note"), std::nullopt);
}

TEST(Builder, WrongMemoryOrdersAreReported) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t, h});
  const ValueId s = b.scalarInput("s", DType::F32);
  const ValueId y = b.name("y").pointwise("exp", {x});
  const std::string expected = "expected each of its 2 axes once, as in order=[0, 1]";
  for (const AxisOrder& order : {AxisOrder{0}, AxisOrder{0, 0}, AxisOrder{0, 2}, AxisOrder{}}) {
    EXPECT_EQ(messageOf([&] { b.output(y, order); }),
              "order=" + str(order) + " of %y: f32[t, h]: " + expected);
  }
  EXPECT_EQ(messageOf([&] { b.output(s, AxisOrder{0}); }),
            "order: operand %s: f32 is a scalar, expected a tensor");
  EXPECT_EQ(messageOf([&] {
              b.requireOrder(x, {1, 0});
            }),
            "order=[1, 0] of %x: f32[t, h]: callers choose the order of an input; return it with "
            "this order, or copy it with set");
  b.requireOrder(y, {1, 0});
  EXPECT_EQ(messageOf([&] {
              b.requireOrder(y, {0, 1});
            }),
            "%y: f32[t, h] is given two orders: [1, 0] and [0, 1]");
  EXPECT_EQ(messageOf([&] {
              b.setStrideOrder(0, {1, 0});
            }),
            "setStrideOrder: there is no output 0, the fusion has 0 so far");
  b.output(y, AxisOrder{0, 1});
  EXPECT_EQ(messageOf([&] {
              b.setStrideOrder(0, {1, 0});
            }),
            "output 0 (%y: f32[t, h]) is given two orders: [0, 1] and [1, 0]");
}

}  // namespace
}  // namespace heddle::builder_test
