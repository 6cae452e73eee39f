#include "ir/graph/verify.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/base/error.h"
#include "ir/graph/builder.h"

namespace heddle::verify_test {
namespace {

// Builds a fusion with the inputs x: f32[t, h] and s. It computes y = mul(x, s) and z = sum(y,
// axes=[0]).
Fusion small() {
  FusionBuilder b("small");
  b.mesh({"m", {{MeshAxis::Y, 2}, {MeshAxis::X, 2}}, {}});
  ValueId x = b.input("x", DType::F32, {Size::symbol("t"), Size::symbol("h")});
  ValueId s = b.scalarInput("s", DType::F64, 2.0);
  ValueId y = b.name("y").pointwise("mul", {x, s});
  b.output(b.name("z").reduce("sum", y, {0}));
  return std::move(b).build();
}

// Verifies small() after `damage` has changed it. Returns the error message without its prefix.
std::string complaint(const std::function<void(Fusion&)>& damage) {
  Fusion fusion = small();
  damage(fusion);
  try {
    verify(fusion);
  } catch (const InternalError& error) {
    std::string message = error.what();
    size_t begin = message.find(": ") + 2;
    return message.substr(begin, message.rfind(" (check:") - begin);
  }
  return "legal";
}

Expression& exprOf(Fusion& fusion, ExprId id) { return const_cast<Expression&>(fusion.expr(id)); }

Sharding shardingOf(std::vector<std::vector<MeshAxis>> axes) {
  Sharding sharding;
  sharding.axes = std::move(axes);
  return sharding;
}

TEST(VerifyFusion, LegalFusionsAreAccepted) {
  EXPECT_EQ(complaint([](Fusion&) {}), "legal");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.setSharding(ValueId(2), shardingOf({{MeshAxis::Y, MeshAxis::X}, {}}));
              f.layout(ValueId(2)).hint = AxisOrder{1, 0};
            }),
            "legal");
}

TEST(VerifyFusion, CorruptIdsAreReported) {
  EXPECT_EQ(complaint([](Fusion& f) { f.appendOutput(ValueId(99)); }),
            "an output is value 99, which does not exist");
  EXPECT_EQ(complaint([](Fusion& f) { f.appendInput(ValueId(-7)); }),
            "an input is value -7, which does not exist");
  EXPECT_EQ(complaint([](Fusion& f) { exprOf(f, ExprId(0)).inputs[1] = ValueId(1000000); }),
            "expression 0 (mul): operand 1000000 does not exist");
  EXPECT_EQ(complaint([](Fusion& f) { exprOf(f, ExprId(1)).outputs[0] = ValueId(-2); }),
            "expression 1 (sum): its output -2 does not exist");
  EXPECT_EQ(complaint([](Fusion& f) { exprOf(f, ExprId(1)).outputs.clear(); }),
            "expression 1 (sum) has 0 outputs, expected 1");
  EXPECT_EQ(complaint([](Fusion& f) { exprOf(f, ExprId(1)).op = nullptr; }),
            "expression 1 has no op");
  EXPECT_EQ(complaint([](Fusion& f) {
              static OpDef copy = op("sum");
              exprOf(f, ExprId(1)).op = &copy;
            }),
            "expression 1 (sum): its op is not of the op table");
}

TEST(VerifyFusion, WrongDefinitionsAndOrderAreReported) {
  EXPECT_EQ(complaint([](Fusion& f) { f.appendInput(ValueId(0)); }), "%x is an input twice");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(0)).definition = ExprId(1); }),
            "%x is an input and defined by expression 1");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(3)).definition = ExprId(12345); }),
            "%z is defined by expression 1 (sum) but says expression 12345");
  EXPECT_EQ(complaint([](Fusion& f) { exprOf(f, ExprId(1)).outputs[0] = ValueId(2); }),
            "%y is defined twice, last by expression 1 (sum)");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.appendValue(Value{"lost", true, {}, {}, kNoExpr, false, 0});
            }),
            "%lost is neither an input nor defined");
  EXPECT_EQ(complaint([](Fusion& f) { exprOf(f, ExprId(0)).inputs[0] = ValueId(3); }),
            "expression 0 (mul) uses %z before expression 1 defines it");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(2)).default_value = 1.0; }),
            "%y has a default but is no scalar input");
}

TEST(VerifyFusion, WrongNamesAreReported) {
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(3)).name = "x"; }),
            "values 0 and 3 are both called %x");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(3)).name = ""; }),
            "value 3 has no name");
}

TEST(VerifyFusion, WrongTypesAreReported) {
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(2)).tensor.dtype = DType::F64; }),
            "%y is f64[t, h], by the rules of mul it is f32[t, h]");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(2)).tensor.domain.pop_back(); }),
            "%y is f32[t], by the rules of mul it is f32[t, h]");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(3)).is_scalar = true; }),
            "%z is a scalar and has axes");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.mutableValue(ValueId(2)).tensor.domain[1].kind = IterKind::Reduction;
            }),
            "%y: axis 1 of a tensor is a reduction axis");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.mutableValue(ValueId(2)).tensor.domain[1].kind = IterKind::Broadcast;
            }),
            "%y: the broadcast axis 1 has the extent h");
}

TEST(VerifyFusion, WrongAttributesAreReported) {
  EXPECT_EQ(
      complaint([](Fusion& f) { exprOf(f, ExprId(1)).attrs.clear(); }),
      "expression 1 (sum) that computes %z: its attributes are not as the builder writes them");
  EXPECT_EQ(
      complaint([](Fusion& f) { exprOf(f, ExprId(1)).attrs[0].second = true; }),
      "expression 1 (sum) that computes %z: sum: attribute 'axes' must be a list of integers");
  EXPECT_EQ(
      complaint([](Fusion& f) { exprOf(f, ExprId(1)).attrs[0].second = std::vector<int64_t>{-2}; }),
      "expression 1 (sum) that computes %z: its attributes are not as the builder writes them");
}

TEST(VerifyFusion, WrongShardingsAreReported) {
  EXPECT_EQ(complaint([](Fusion& f) { f.setSharding(ValueId(1), shardingOf({})); }),
            "%s is a scalar and has a sharding");
  EXPECT_EQ(complaint([](Fusion& f) { f.setSharding(ValueId(2), shardingOf({{}})); }),
            "%y: its sharding has 1 axes, the tensor 2");
  EXPECT_EQ(complaint([](Fusion& f) {
              Sharding sharding = shardingOf({{}, {}});
              sharding.mesh = MeshId(1);
              f.setSharding(ValueId(2), sharding);
            }),
            "%y: its sharding is over mesh 1, the fusion has 1 mesh(es)");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.setSharding(ValueId(2), shardingOf({{MeshAxis::Z}, {}}));
            }),
            "%y: mesh @m = [y=2, x=2] has no axis z");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.setSharding(ValueId(2), shardingOf({{MeshAxis::X}, {MeshAxis::X}}));
            }),
            "%y: mesh axis x is used twice");
  EXPECT_EQ(complaint([](Fusion& f) {
              Sharding sharding = shardingOf({{}, {}});
              sharding.stream = Sharding::StreamSplit{2, 4};
              f.setSharding(ValueId(2), sharding);
            }),
            "%y: stream(2: 4) needs an axis of the tensor and at least one chunk");
  EXPECT_EQ(complaint([](Fusion& f) { f.mutableValue(ValueId(2)).user_sharding = true; }),
            "%y has a user's sharding that is not there");
}

TEST(VerifyFusion, WrongLayoutsAreReported) {
  EXPECT_EQ(complaint([](Fusion& f) {
              f.layout(ValueId(2)).required = AxisOrder{0, 2};
            }),
            "%y: required order [0, 2] is no permutation of its 2 axes");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.layout(ValueId(0)).observed = Layout::Observed{{1, 0}, {true}};
            }),
            "%x: 1 contiguity flags for 2 axes");
  EXPECT_EQ(complaint([](Fusion& f) {
              f.layout(ValueId(2)).observed = Layout::Observed{{1, 0}, {true, true}};
            }),
            "%y is computed and has an observed layout");
}

TEST(VerifyFusion, StaleAnnotationsAreReported) {
  auto annotate = [](Fusion& f, ValueId id) {
    f.annotate<ValueId>("fact", id,
                        [](const ValueId& old, const Fusion::IdMap& map) { return map(old); });
  };
  EXPECT_EQ(complaint([&](Fusion& f) { annotate(f, ValueId(2)); }), "legal");
  EXPECT_EQ(complaint([&](Fusion& f) { annotate(f, ValueId(20)); }),
            "annotation 'fact' names a value that does not exist");
}

// Returns the message of checkSizes() for the value y = pad(x: f32[n, 4]).
std::string sizeError(std::vector<Size> lows, std::vector<Size> highs, const SizeBindings& sizes) {
  FusionBuilder b("f");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size(4)});
  b.line(7);
  b.output(b.reduce("sum", b.name("y").pad(x, std::move(lows), std::move(highs)), {0, 1}));
  const Fusion fusion = std::move(b).build();
  try {
    checkSizes(fusion, sizes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "legal";
}

TEST(VerifySizes, ExtentsThatOverflowAreReported) {
  EXPECT_EQ(sizeError({INT64_MAX, 0}, {0, 0}, {{"n", 4}})
                .find("axis 0 of %y at line 7: size 'n + 9223372036854775807' overflows"),
            0u);
  EXPECT_EQ(sizeError({INT64_MAX, 0}, {0, 0}, {}), "legal") << "n has no value";
}

TEST(VerifySizes, ValuesOfTooManyBytesAreReported) {
  const int64_t most = INT64_MAX / 16;  // rows of 16 bytes
  EXPECT_EQ(sizeError({most, 0}, {0, 0}, {{"n", 0}}), "legal");
  EXPECT_EQ(sizeError({most, 0}, {0, 0}, {{"n", 1}}),
            "%y at line 7 of [576460752303423488, 4] does not fit in 64 bits");
  EXPECT_EQ(sizeError({INT64_MAX - 8, INT64_MAX - 8}, {1, 1}, {{"n", 4}}),
            "%y at line 7 of [9223372036854775804, 9223372036854775804] does not fit in 64 bits");
}

TEST(VerifySizes, NegativeExtentsAreReported) {
  EXPECT_EQ(sizeError({-3, 0}, {-3, 0}, {{"n", 6}}), "legal");
  EXPECT_EQ(sizeError({-3, 0}, {-3, 0}, {{"n", 4}}),
            "axis 0 of %y at line 7 has the size n + (-3) + (-3) = -2");
}

// Returns hasOnlySizesOfOperands() for `body`, which starts from x: f32[n, m] and returns a tensor
// without axes.
bool needsNoValues(const std::function<ValueId(FusionBuilder&, ValueId x)>& body) {
  FusionBuilder b("f");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("n"), Size::symbol("m")});
  b.output(b.reduce("sum", body(b, x), {}));
  return hasOnlySizesOfOperands(std::move(b).build());
}

TEST(VerifyOnlySizesOfOperands, SubsetsOfTheExtentsOfAnInputNeedNoValues) {
  EXPECT_TRUE(needsNoValues([](auto& b, ValueId x) { return b.pointwise("exp", {x}); }));
  EXPECT_TRUE(needsNoValues([](auto& b, ValueId x) { return b.reduce("max", x, {1}, true); }));
  EXPECT_TRUE(needsNoValues([](auto& b, ValueId x) { return b.reduce("max", x, {0}); }));
}

TEST(VerifyOnlySizesOfOperands, LargerOrOtherExtentsAndLargerElementsNeedValues) {
  EXPECT_FALSE(needsNoValues([](auto& b, ValueId x) { return b.cast(x, DType::F64); }));
  EXPECT_FALSE(needsNoValues([](auto& b, ValueId x) { return b.pad(x, {0, 0}, {1, 0}); }));
  EXPECT_FALSE(needsNoValues([](auto& b, ValueId x) { return b.permute(x, {1, 0}); }));
  EXPECT_FALSE(needsNoValues([](auto& b, ValueId x) {
    const ValueId rows = b.reduce("sum", x, {1});  // n, then n by n
    return b.pointwise("mul", {b.broadcast(rows, {0}), b.broadcast(rows, {1})});
  }));
}

}  // namespace
}  // namespace heddle::verify_test
