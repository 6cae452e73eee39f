// Where propagateSharding puts values.
#include "ir/passes/sharding/propagate_sharding.h"

#include <gtest/gtest.h>

#include "ir/graph/remove_dead.h"
#include "ir/graph/verify.h"
#include "ir/passes/note_stream_splits.h"
#include "ir/passes/pipeline.h"
#include "ir/text/fusion_text.h"

namespace heddle::sharding_test {
namespace {

Fusion propagated(const std::string& text) {
  Fusion result = propagateSharding(parseFusion("heddle 1\n" + text));
  verify(result);
  return result;
}

std::string stateOf(const Fusion& fusion, const std::string& name) {
  const std::optional<Sharding>& sharding = fusion.tensor(fusion.find(name).value()).sharding;
  if (!sharding) return "none";
  return sharding->str(fusion.meshes[sharding->mesh]);
}

TEST(PropagateSharding, PointwiseFollowsItsOperands) {
  Fusion f = propagated(R"(
mesh @m = [y=2, x=4]
fusion f(%a: f32[t, h] shard(@m, 0: y), %b: f32[t, h] shard(@m, 1: x)) {
  %c = add(%a, %b)
  %d = relu(%c)
  return %d
})");
  EXPECT_EQ(stateOf(f, "c"), "shard(@m, 0: y, 1: x)");
  EXPECT_EQ(stateOf(f, "d"), "shard(@m, 0: y, 1: x)");
  EXPECT_EQ(stateOf(f, "a"), "shard(@m, 0: y)");
}

TEST(PropagateSharding, NothingHappensWithoutAnyAnnotation) {
  Fusion f = propagated(R"(
mesh @m = [x=4]
fusion f(%a: f32[t]) {
  %c = relu(%a)
  return %c
})");
  EXPECT_EQ(stateOf(f, "a"), "none");
  EXPECT_EQ(stateOf(f, "c"), "none");
}

// The bigger operand would cost more to move.
TEST(PropagateSharding, AConflictGoesToTheOperandWithMoreBytes) {
  Fusion f = propagated(R"(
mesh @m = [x=4]
fusion f(%a: bf16[t, h] shard(@m, 0: x), %b: f32[t, h] shard(@m, 1: x)) {
  %c = add(%a, %b)
  %d = relu(%c)
  return %d
})");
  EXPECT_EQ(stateOf(f, "c"), "shard(@m, 1: x)");
}

TEST(PropagateSharding, OfEqualOperandsTheFirstWins) {
  Fusion f = propagated(R"(
mesh @m = [x=4]
fusion f(%a: f32[t, h] shard(@m, 0: x), %b: f32[t, h] shard(@m, 1: x)) {
  %c = add(%a, %b)
  return %c
})");
  EXPECT_EQ(stateOf(f, "c"), "shard(@m, 0: x)");
}

TEST(PropagateSharding, ThroughPermuteBroadcastAndReduction) {
  Fusion f = propagated(R"(
mesh @m = [y=2, x=4]
fusion f(%a: f32[t, h] shard(@m, 0: y, 1: x)) {
  %p = permute(%a, axes=[1, 0])
  %b = broadcast(%p, axes=[0])
  %s = sum(%a, axes=[1])
  return %b, %s
})");
  EXPECT_EQ(stateOf(f, "p"), "shard(@m, 0: x, 1: y)");
  EXPECT_EQ(stateOf(f, "b"), "shard(@m, 1: x, 2: y)");
  EXPECT_EQ(stateOf(f, "s"), "shard(@m, 0: y)");  // the partial sum over x is resolved
}

TEST(PropagateSharding, SliceCarriesWholeAxesOnly) {
  Fusion f = propagated(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[t, h] shard(@m, 0: y, 1: x)) with t = 8, h = 8 {
  %s = slice(%a, starts=[0, 1], stops=[t, 5])
  return %s
})");
  EXPECT_EQ(stateOf(f, "s"), "shard(@m, 0: y)");
}

// The outermost factor keeps what the axis had; an inner one has none.
TEST(PropagateSharding, ThroughReshapesThatSplitAndMerge) {
  Fusion f = propagated(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[t, h] shard(@m, 0: y, 1: x), %b: f32[4, 6, h] shard(@m, 0: y, 1: x)) {
  %split = reshape(%a, sizes=[t, 2, h/2])
  %merged = reshape(%split, sizes=[t, h])
  %rows = reshape(%a, sizes=[t*h])
  %both = reshape(%b, sizes=[24, 2, h/2])
  %again = reshape(%b, sizes=[2, 12, h])
  %other = reshape(%b, sizes=[3, 8, h])
  return %split, %merged, %rows, %both, %again, %other
})");
  EXPECT_EQ(stateOf(f, "split"), "shard(@m, 0: y, 1: x)");
  EXPECT_EQ(stateOf(f, "merged"), "shard(@m, 0: y, 1: x)");
  EXPECT_EQ(stateOf(f, "rows"), "shard(@m, 0: y)");
  EXPECT_EQ(stateOf(f, "both"), "shard(@m, 0: y)");
  EXPECT_EQ(stateOf(f, "again"), "shard(@m, 0: y)");
  EXPECT_EQ(stateOf(f, "other"), "shard(@m)");  // 3 blocks for 2 devices
}

// A reader that wants a split axis sharded wants the whole one so.
TEST(PropagateSharding, BackwardThroughAReshape) {
  Fusion f = propagated(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h], %w: f32[8, t, t] shard(@m, 0: x)) {
  %s = reshape(%a, sizes=[t, 8, h/8])
  %p = permute(%s, axes=[1, 0, 2])
  %y = matmul(%w, %p)
  return %y
})");
  EXPECT_EQ(stateOf(f, "p"), "shard(@m, 0: x)");
  EXPECT_EQ(stateOf(f, "a"), "shard(@m, 1: x)");
}

// What may be uneven does not follow its readers through a reshape: the user sharded %x alone.
TEST(PropagateSharding, NotBackwardThroughAReshapeThatMayBeUneven) {
  Fusion f = propagated(R"(
mesh @m = [x=3]
fusion f(%x: f32[n, h] shard(@m, 0: x), %a: f32[n*h], %b: f32[n, 2*h], %c: f32[3*n*h]) with n = 3, h = 2 {
  %more = add(%a, 1)
  %s = reshape(%more, sizes=[n, h])
  %j = add(%x, %s)
  %merged = reshape(%b, sizes=[2*n*h])
  %wide = set(%merged) shard(@m, 0: x)
  %even = reshape(%c, sizes=[3, n*h])
  %z = set(%even) shard(@m, 0: x)
  return %j, %wide, %z
})");
  EXPECT_EQ(stateOf(f, "j"), "shard(@m, 0: x)");
  EXPECT_EQ(stateOf(f, "s"), "shard(@m, 0: x)");
  EXPECT_EQ(stateOf(f, "more"), "shard(@m)");
  EXPECT_EQ(stateOf(f, "a"), "shard(@m)");
  EXPECT_EQ(stateOf(f, "b"), "shard(@m)");
  EXPECT_EQ(stateOf(f, "c"), "shard(@m, 0: x)");  // a multiple of 3 whatever the sizes
}

TEST(PropagateSharding, LookupsInAShardedTable) {
  Fusion f = propagated(R"(
mesh @m = [y=2, x=2]
fusion f(%i: i64[t] shard(@m, 0: y), %table: f32[v, h] shard(@m, 0: x), %j: i64[v, h]) {
  %e = embedding(%i, %table)
  %g = take_along_axis(%table, %j, axis=0)
  return %e, %g
})");
  EXPECT_EQ(stateOf(f, "e"), "shard(@m, 0: y)");  // the partial sum over x is resolved
  EXPECT_EQ(stateOf(f, "g"), "shard(@m)");
}

TEST(PropagateSharding, MatmulAxes) {
  Fusion f = propagated(R"(
mesh @m = [y=2, x=4]
fusion f(%x: f32[t, h] shard(@m, 0: y), %w: f32[h, f] shard(@m, 1: x), %v: f32[f, h]) {
  %a = matmul(%x, %w)
  %b = matmul(%a, %v)
  return %b
})");
  EXPECT_EQ(stateOf(f, "a"), "shard(@m, 0: y, 1: x)");
  EXPECT_EQ(stateOf(f, "v"), "shard(@m, 0: x)");  // nothing else decides: its one reader does
  EXPECT_EQ(stateOf(f, "b"), "shard(@m, 0: y)");
}

TEST(PropagateSharding, UnannotatedInputsFollowTheirReadersOrAreReplicated) {
  Fusion f = propagated(R"(
mesh @m = [x=4]
fusion f(%a: f32[t], %b: f32[t], %c: f32[t], %z: f32[n]) {
  %d = add(%a, %b)
  %e = mul(%d, %c) shard(@m, 0: x)
  %n = neg(%c) shard(@m)
  %u = neg(%z)
  return %e, %n, %u
})");
  EXPECT_EQ(stateOf(f, "d"), "shard(@m, 0: x)");
  EXPECT_EQ(stateOf(f, "a"), "shard(@m, 0: x)");
  EXPECT_EQ(stateOf(f, "c"), "shard(@m)");  // its readers disagree
  EXPECT_EQ(stateOf(f, "z"), "shard(@m)");
  EXPECT_EQ(stateOf(f, "u"), "shard(@m)");
}

// Full and iota cost nothing in any state: they are made as their readers want them, however long
// it takes to know that, and replicated when nobody wants anything.
TEST(PropagateSharding, NewTensorsFollowTheirReadersOrAreReplicated) {
  Fusion f = propagated(R"(
mesh @m = [x=4]
fusion f(%a: f32[t, h] shard(@m, 0: x)) {
  %row = iota(sizes=[t, h], axis=0)
  %col = iota(sizes=[t, h], axis=1)
  %y = add(%a, %row)
  %e = eq(%row, %col)
  %big = full(7, sizes=[t, h], dtype=i64)
  %twice = add(%big, %big)
  %p = where(%e, %row, %twice)
  %alone = iota(sizes=[h], axis=0)
  return %y, %p, %alone
})");
  for (const char* name : {"row", "col", "e", "big", "twice", "p"}) {
    EXPECT_EQ(stateOf(f, name), "shard(@m, 0: x)") << name;
  }
  EXPECT_EQ(stateOf(f, "alone"), "shard(@m)");
}

TEST(PropagateSharding, UserAnnotationsStay) {
  Fusion f = propagated(R"(
mesh @m = [x=4]
fusion f(%a: f32[t, h] shard(@m, 0: x)) {
  %b = relu(%a) shard(@m, 1: x)
  %c = neg(%b) shard(@m)
  return %c shard(@m)
})");
  EXPECT_EQ(stateOf(f, "a"), "shard(@m, 0: x)");
  EXPECT_EQ(stateOf(f, "b"), "shard(@m, 1: x)");
  EXPECT_EQ(stateOf(f, "c"), "shard(@m)");
  EXPECT_TRUE(f.value(f.find("b").value()).user_sharding);
}

// The result says where; without one, the operand with more bytes does.
TEST(PropagateSharding, TwoMeshesInOneExpression) {
  Fusion f = propagated(R"(
mesh @m = [x=2]
mesh @n = [x=2] ranks=[2, 3]
fusion f(%a: f32[t] shard(@m, 0: x), %b: f32[t, t] shard(@n, 0: x), %u: f32[t]) {
  %c = add(%a, %b)
  %d = add(%a, %b) shard(@m)
  %e = add(%d, %u)
  return %c, %d, %e
})");
  EXPECT_EQ(stateOf(f, "c"), "shard(@n, 0: x)");
  EXPECT_EQ(stateOf(f, "d"), "shard(@m)");
  EXPECT_EQ(stateOf(f, "u"), "shard(@m)");
}

TEST(NoteStreamSplits, TheyRideAlongThroughThePasses) {
  const Fusion fusion = runPasses(parseFusion(R"(heddle 1
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 0: x), %w: f32[h, g] shard(@m)) {
  %unused = relu(%w)
  %g = set(%a) shard(@m)
  %c = matmul(%g, %w) shard(@m) stream(0: 4)
  return %c
})"),
                                  2);
  for (const Value& value : fusion.values()) {
    EXPECT_FALSE(value.tensor.sharding && value.tensor.sharding->stream) << value.name;
  }
  const auto splits = fusion.annotation<StreamSplits>(kStreamSplits);
  ASSERT_TRUE(splits.has_value());
  ASSERT_EQ(splits->size(), 1u);
  EXPECT_EQ(fusion.value(splits->front().value).name, "c");
  EXPECT_EQ(splits->front().split, (Sharding::StreamSplit{0, 4}));
}

TEST(RemoveDead, InputsStayAndDeadExpressionsGo) {
  Fusion f = removeDead(parseFusion(R"(heddle 1
fusion f(%a: f32[t], %unused: f32[t]) {
  %dead = exp(%a)
  %deader = neg(%dead)
  %b = relu(%a)
  return %b
})"));
  verify(f);
  EXPECT_EQ(f.inputs().size(), 2u);
  ASSERT_EQ(f.exprs().size(), 1u);
  EXPECT_EQ(f.value(f.outputs()[0]).name, "b");
  EXPECT_EQ(f.expr(ExprId(0)).line, 5);
}

}  // namespace
}  // namespace heddle::sharding_test
