// The sets that insertResharding and materializeViews put in.
#include <gtest/gtest.h>

#include "tests/ir/passes/resharding_listing.h"

namespace heddle::resharding_test {
namespace {

class TensorParallelMlp : public ::testing::TestWithParam<int> {};

// Megatron: the first matmul by columns, the second by rows, one allreduce.
TEST_P(TensorParallelMlp, HasOneAllreduce) {
  Fusion f = lowered(R"(
mesh @m = [x=ranks]
fusion mlp(%x: bf16[t, h], %w1: bf16[h, f] shard(@m, 1: x), %w2: bf16[f, h] shard(@m, 0: x)) {
  %a = matmul(%x, %w1)
  %g = silu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m)
})",
                     GetParam());
  EXPECT_EQ(listing(f), (Lines{"a = matmul(x, w1)", "g = silu(a)", "y_partial = matmul(g, w2)",
                               "y = allreduce(y_partial x)"}));
  EXPECT_EQ(f.meshes.front().size(), GetParam());
  EXPECT_EQ(f.expr(ExprId(3)).line, 7);  // of the matmul
}
INSTANTIATE_TEST_SUITE_P(Devices, TensorParallelMlp, ::testing::Values(1, 2, 4));

// Sequence parallel: gather before the first matmul, reduce-scatter after the second.
TEST(InsertResharding, SequenceParallelMlp) {
  Fusion f = lowered(R"(
mesh @m = [x=4]
fusion mlp(%x: bf16[t, h] shard(@m, 0: x), %w1: bf16[h, f] shard(@m, 1: x),
           %w2: bf16[f, h] shard(@m, 0: x)) with t = 128, h = 4096, f = 8192 {
  %a = matmul(%x, %w1)
  %y = matmul(%a, %w2)
  return %y shard(@m, 0: x)
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"x_gathered = allgather(x, 0 x)", "a = matmul(x_gathered, w1)",
                               "y_partial = matmul(a, w2)", "y = reduce_scatter(y_partial, 0 x)"}));
}

// On a 2x2 mesh each collective has the team of its own axis.
TEST(InsertResharding, TeamsOfAnyMeshAxis) {
  Fusion f = lowered(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[t, h] shard(@m, 0: y, 1: x)) {
  %s = sum(%a, axes=[1])
  %r = sum(%a, axes=[0])
  %all = sum(%a, axes=[0, 1])
  return %s, %r, %all
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"s_partial = sum(a)", "s = allreduce(s_partial x)",
                               "r_partial = sum(a)", "r = allreduce(r_partial y)",
                               "all_partial = sum(a)", "all = allreduce(all_partial y x)"}));
}

TEST(InsertResharding, GathersAWholeListAtOnceWhereItIsEven) {
  Fusion f = lowered(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[4*t, h] shard(@m, 0: [y, x])) {
  %b = set(%a) shard(@m)
  return %b
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"b = allgather(a, 0 y x)"}));
  EXPECT_TRUE(f.guards.empty());
}

// Blocks of uneven blocks do not follow each other without gaps: the inner ones are put together
// first, then copied to where the outer ones do.
TEST(InsertResharding, AListThatMayBeUnevenIsGatheredAxisByAxis) {
  Fusion f = lowered(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[t] shard(@m, 0: [y, x])) {
  %b = set(%a) shard(@m)
  return %b
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"b_gathered = allgather(a, 0 x)", "b_packed = copy(b_gathered)",
                               "b = allgather(b_packed, 0 y)"}));
  EXPECT_TRUE(f.guards.empty());
}

// Costs of sizes that no default says stay numbers, however many there are.
TEST(InsertResharding, ExtentsOfManySymbols) {
  Fusion f = lowered(R"(
mesh @m = [x=4]
fusion f(%a: f32[q*r*s*t*u*v, h] shard(@m, 0: x)) {
  %b = set(%a) shard(@m)
  %c = exp(%b)
  return %c shard(@m, 1: x)
})",
                     4);
  EXPECT_EQ(listing(f).front(), "b = allgather(a, 0 x)");
}

// An uneven split over one mesh axis is fine: the blocks are padded alike.
TEST(InsertResharding, OneUnevenAxisNeedsNoGuard) {
  Fusion f = lowered(R"(
mesh @m = [x=4]
fusion f(%a: f32[7, 3] shard(@m, 0: x)) {
  %b = set(%a) shard(@m)
  return %b
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"b = allgather(a, 0 x)"}));
  EXPECT_TRUE(f.guards.empty());
}

// An axis that is not outermost is gathered in a hinted layout, in and out.
TEST(InsertResharding, HintsWhereTheValueIsComputed) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 1: x)) {
  %b = relu(%a) shard(@m)
  return %b
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"b_local = relu(a)", "b = allgather(b_local, 1 x)"}));
  EXPECT_EQ(layoutOf(f, "b_local").allocation_order, (AxisOrder{1, 0}));
  EXPECT_EQ(layoutOf(f, "b").allocation_order, (AxisOrder{1, 0}));
}

TEST(InsertResharding, CopiesAnInputAndARequiredOrder) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 1: x)) {
  %b = set(%a) shard(@m) stride_order=[0, 1]
  return %b
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"b_packed = copy(a)", "b_gathered = allgather(b_packed, 1 x)",
                               "b = copy(b_gathered)"}));
  EXPECT_EQ(layoutOf(f, "b").stride_order, (AxisOrder{0, 1}));
}

TEST(InsertResharding, AnInputObservedInTheRightOrderIsUsedAsItIs) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 1: x) order=[1, 0] contiguous=[true, true]) {
  %b = set(%a) shard(@m)
  return %b
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"b = allgather(a, 1 x)"}));
  EXPECT_EQ(layoutOf(f, "b").allocation_order, (AxisOrder{1, 0}));
}

// Both readers use one gathered value.
TEST(InsertResharding, AMoveIsMadeOnce) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 0: x)) {
  %b = slice(%a, starts=[1, 0], stops=[3, h])
  %c = slice(%a, starts=[2, 0], stops=[4, h])
  return %b, %c
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"a_gathered = allgather(a, 0 x)", "b = slice(a_gathered)",
                               "c = slice(a_gathered)"}));
}

// A reader that wants a block gets it by reduce-scatter and not by allreduce and slice.
TEST(InsertResharding, PartialResultsFollowTheirReader) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%x: f32[t, k] shard(@m, 1: x), %w: f32[k, n] shard(@m, 0: x)) {
  %y = matmul(%x, %w)
  %z = relu(%y) shard(@m, 0: x)
  return %z
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"y_partial = matmul(x, w)", "y = reduce_scatter(y_partial, 0 x)",
                               "z = relu(y)"}));
}

// %p is gathered where %b lies, so %b may lie no other way when it is gathered itself.
TEST(InsertResharding, AGatheredViewFixesTheOrderOfItsBase) {
  Fusion f = lowered(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[t, h] shard(@m, 0: y, 1: x)) {
  %b = relu(%a)
  %p = permute(%b, axes=[1, 0])
  %q = set(%p) shard(@m, 0: x)
  %c = set(%b) shard(@m, 0: y)
  return %q, %c
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"b = relu(a)", "p = permute(b)", "q = allgather(p, 1 y)",
                               "c_packed = copy(b)", "c = allgather(c_packed, 1 x)"}));
  EXPECT_EQ(layoutOf(f, "b").allocation_order, std::nullopt);
}

// Tokens outermost, as the gather wants them, up to the scatter; %h is read by a view, which wants
// row-major rows, and %s has operands of two orders.
TEST(FollowOrders, FromTheGatherToWhatIsReadOtherwise) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%x: f32[b, t, k] shard(@m, 1: x), %r: f32[b, t, n] shard(@m, 2: x),
         %v: f32[k, n] shard(@m, 1: x), %w: f32[n, k] shard(@m, 0: x))
    with b = 2, t = 16, k = 32, n = 512 {
  %p = matmul(%x, %v)
  %q = exp(%p)
  %s = add(%q, %r)
  %u = tanh(%q)
  %y = matmul(%u, %w)
  %h = matmul(%x, %v)
  %i = reshape(%h, sizes=[b*t, n])
  return %y shard(@m, 1: x), %s, %i shard(@m, 1: x)
})",
                     2);
  const AxisOrder tokens_first{1, 0, 2};
  for (const char* name : {"x_gathered", "p", "q", "u", "y_partial"}) {
    EXPECT_EQ(layoutOf(f, name).allocation_order, tokens_first) << name;
  }
  for (const char* name : {"s", "h"}) {
    EXPECT_EQ(layoutOf(f, name).allocation_order, std::nullopt) << name;
  }
}

TEST(MaterializeViews, CopiesWhatIsNotRowMajorBeforeAReshape) {
  Fusion f = lowered(R"(
fusion f(%a: f32[2, 3, 4]) {
  %r = reshape(%a, sizes=[6, 4])
  %p = permute(%a, axes=[1, 0, 2])
  %q = reshape(%p, sizes=[6, 4])
  return %r, %q
})",
                     1);
  EXPECT_EQ(listing(f), (Lines{"r = reshape(a)", "p = permute(a)", "p_packed = copy(p)",
                               "q = reshape(p_packed)"}));
  EXPECT_EQ(layoutOf(f, "p_packed").stride_order, (AxisOrder{0, 1, 2}));
}

TEST(MaterializeViews, CopiesAnInputObservedInAnotherOrder) {
  Fusion f = lowered(R"(
fusion f(%a: f32[t, h] order=[1, 0] contiguous=[true, true]) {
  %r = reshape(%a, sizes=[t*h])
  return %r
})",
                     1);
  EXPECT_EQ(listing(f), (Lines{"a_packed = copy(a)", "r = reshape(a_packed)"}));
}

}  // namespace
}  // namespace heddle::resharding_test
