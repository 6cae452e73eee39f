// The steps by which data moves, on one mesh and between meshes, and what is said of them.
#include <gtest/gtest.h>

#include "ir/passes/sharding/reshard_moves.h"
#include "tests/ir/passes/resharding_listing.h"

namespace heddle::reshard_steps_test {
namespace {

// The axis that is cut is the outermost in memory, by a hint.
TEST(InsertResharding, FromOneAxisToAnotherIsAnExchange) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 0: x)) {
  %b = relu(%a) shard(@m, 1: x)
  return %b
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"b_local = relu(a)", "b = all_to_all(b_local, 0 to 1 x)"}));
  EXPECT_EQ(layoutOf(f, "b_local").allocation_order, (AxisOrder{1, 0}));
  EXPECT_EQ(layoutOf(f, "b").allocation_order, std::nullopt);
}

TEST(InsertResharding, ExchangesTheTeamOfAnyMeshAxes) {
  Fusion f = lowered(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[8, 8, h] shard(@m, 0: [y, x])) {
  %b = set(%a) shard(@m, 1: [y, x])
  %c = set(%a) shard(@m, 0: y, 2: x)
  return %b, %c
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"b_packed = copy(a)", "b = all_to_all(b_packed, 0 to 1 y x)",
                               "c_packed = copy(a)", "c = all_to_all(c_packed, 0 to 2 x)"}));
}

// One exchange pads what it cuts, which no other collective expects.
TEST(InsertResharding, MemoryThatIsPaddedIsNotShared) {
  Fusion f = lowered(R"(
mesh @m = [y=2, x=2]
fusion f(%a: f32[t, h] shard(@m, 1: x)) {
  %r = relu(%a)
  %b = set(%r) shard(@m, 0: x)
  %c = set(%r) shard(@m)
  return %b, %c
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"r = relu(a)", "b = all_to_all(r, 1 to 0 x)", "c_packed = copy(r)",
                               "c = allgather(c_packed, 1 x)"}));
}

constexpr const char* kStages = R"(
mesh @a = [x=2] ranks=[0, 1]
mesh @b = [x=2] ranks=[2, 3]
mesh @one = [x=1] ranks=[1]
mesh @all = [x=4]
)";

TEST(InsertResharding, BetweenMeshes) {
  Fusion f = lowered(std::string(kStages) + R"(
fusion f(%x: f32[t, h] shard(@a, 0: x), %w: f32[t, h] shard(@a), %v: f32[t, h] shard(@one),
         %u: f32[t, h] shard(@one)) {
  %sent = set(%x) shard(@b, 0: x)
  %gathered = set(%x) shard(@one)
  %scattered = set(%v) shard(@a, 0: x)
  %here = set(%w) shard(@one)
  %far = set(%u) shard(@b)
  %more = set(%x) shard(@all)
  return %sent, %gathered, %scattered, %here, %far, %more
})",
                     4);
  EXPECT_EQ(
      listing(f),
      (Lines{"sent = send(x y in @a_with_b root 0)", "gathered = gather(x, 0 x in @a root 1)",
             "scattered = scatter(v, 0 x in @a root 1)", "here = slice(w)",
             "far = broadcast(u in @one_to_b root 0)", "more_gathered = allgather(x, 0 x)",
             "more_packed = copy(more_gathered)", "more = broadcast(more_packed in @all root 0)"}));
  std::vector<std::string> meshes;
  for (const DeviceMesh& mesh : f.meshes) meshes.push_back(mesh.str());
  EXPECT_EQ(meshes,
            (Lines{"@a = [x=2] ranks=[0, 1]", "@b = [x=2] ranks=[2, 3]", "@one = [x=1] ranks=[1]",
                   "@all = [x=4]", "@a_with_b = [y=2, x=2] ranks=[0, 1, 2, 3]",
                   "@one_to_b = [x=3] ranks=[1, 2, 3]"}));
}

// The root joins the team as its last rank, whatever the mesh's order; neither side is held whole
// by more devices than want it.
TEST(InsertResharding, RootsOutsideOfTheMesh) {
  Fusion f = lowered(R"(
mesh @a = [x=2] ranks=[2, 0]
mesh @grid = [y=2, x=2] ranks=[4, 5, 6, 7]
mesh @one = [x=1] ranks=[1]
fusion f(%x: f32[t, h] shard(@a, 1: x), %g: f32[8, h] shard(@grid, 0: [x, y]),
         %u: f32[t, h] shard(@one), %w: f32[t, 6] shard(@grid, 0: y, 1: x)) {
  %there = set(%x) shard(@one)
  %grid = set(%g) shard(@one)
  %parts = set(%u) shard(@a, 0: x)
  %both = set(%w) shard(@one)
  return %there, %grid, %parts, %both
})",
                     8);
  const Lines got = listing(f);
  const auto has = [&](const std::string& line) {
    return std::find(got.begin(), got.end(), line) != got.end();
  };
  EXPECT_TRUE(has("there = gather(there_packed, 1 in @a_to_one root 2)"))
      << fmt::format("{}", fmt::join(got, "\n"));
  EXPECT_TRUE(has("grid = gather(g, 0 in @grid_to_one root 4)"))
      << fmt::format("{}", fmt::join(got, "\n"));
  EXPECT_TRUE(has("parts = scatter(u, 0 in @one_to_a root 2)"))
      << fmt::format("{}", fmt::join(got, "\n"));
  // Sharded on two axes: not one gather.
  EXPECT_FALSE(has("both = gather(w, 0 in @grid_to_one root 4)"));
  std::vector<std::string> meshes;
  for (const DeviceMesh& mesh : f.meshes) meshes.push_back(mesh.str());
  const auto mesh = [&](const std::string& text) {
    return std::find(meshes.begin(), meshes.end(), text) != meshes.end();
  };
  EXPECT_TRUE(mesh("@a_to_one = [x=3] ranks=[2, 0, 1]"))
      << fmt::format("{}", fmt::join(meshes, "\n"));
  EXPECT_TRUE(mesh("@grid_to_one = [x=5] ranks=[4, 6, 5, 7, 1]"));
}

// The activation goes to the weight of the next stage, which has more bytes.
TEST(InsertResharding, AnExpressionOverTwoMeshesMovesTheFewerBytes) {
  Fusion f = lowered(std::string(kStages) + R"(
fusion f(%x: f32[16, 64] shard(@a, 0: x), %w: f32[64, 64] shard(@b)) {
  %y = matmul(%x, %w)
  return %y
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"x_sent = send(x y in @a_with_b root 0)", "y = matmul(x_sent, w)"}));
  EXPECT_EQ(f.meshes[f.tensor(f.outputs()[0]).sharding->mesh].name, "b");
}

// A full or an iota is made where it is wanted.
TEST(InsertResharding, NewTensorsAreMadeOnEachMesh) {
  Fusion f = lowered(std::string(kStages) + R"(
fusion f(%x: f32[t] shard(@a, 0: x), %y: f32[t] shard(@b)) {
  %i = iota(sizes=[t], axis=0)
  %p = add(%x, %i)
  %q = add(%y, %i)
  return %p, %q
})",
                     4);
  for (const std::string& line : listing(f)) {
    EXPECT_EQ(line.find("send"), std::string::npos) << line;
    EXPECT_EQ(line.find("broadcast"), std::string::npos) << line;
  }
}

TEST(InsertResharding, ALookupInAShardedTableIsLocalAndSummed) {
  Fusion f = lowered(R"(
mesh @m = [x=4]
fusion f(%i: i64[t], %table: f32[v, h] shard(@m, 0: x)) {
  %e = embedding(%i, %table)
  return %e
})",
                     4);
  EXPECT_EQ(listing(f), (Lines{"e_partial = take(table, i)", "e = allreduce(e_partial x)"}));
}

TEST(InsertResharding, AReshapeOfAShardedAxisGuardsThatItIsEven) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, h] shard(@m, 1: x), %b: f32[n, t, h] shard(@m, 0: x)) {
  %r = reshape(%a, sizes=[t, 4, h/4])
  %s = reshape(%b, sizes=[n*t, h])
  return %r, %s
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"r = reshape(a)", "s = reshape(b)"}));
  std::vector<std::string> guards;
  for (const SizeGuard& guard : f.guards) {
    if (guard.source.find("must divide evenly") != std::string::npos) {
      guards.push_back(guard.a.str() + " of " + guard.source);
    }
  }
  ASSERT_EQ(guards.size(), 3u);
  EXPECT_EQ(guards[0].rfind("h % 2 of reshape at line 5: axis 1 of %a, h elements", 0), 0u)
      << guards[0];
  EXPECT_NE(guards[0].find("gather the axis before, as in `set(%a) shard(@m)`"), std::string::npos)
      << guards[0];
  EXPECT_EQ(guards[1].rfind("n % 2 of reshape at line 6", 0), 0u) << guards[1];
  EXPECT_EQ(guards[2].rfind("n*t % 2 of reshape at line 6", 0), 0u) << guards[2];
}

TEST(InsertResharding, AReshapeThatSplitsAnUnevenAxisIsRefused) {
  const std::string head = R"(
mesh @m = [x=4]
fusion f(%a: f32[3, 12] shard(@m, 1: x)) {
)";
  try {
    lowered(head + "  %r = reshape(%a, sizes=[3, 2, 6])\n  return %r\n}", 4);
    FAIL() << "no error";
  } catch (const UserError& error) {
    const std::string what = error.what();
    for (const char* part : {"reshape at line 5", "axis 1 of %a", "12 elements", "%r",
                             "2 does not divide evenly over the 4 devices", "set(%a) shard(@m)"}) {
      EXPECT_NE(what.find(part), std::string::npos) << what;
    }
  }
  Fusion f = lowered(head + "  %r = reshape(%a, sizes=[3, 2, 6]) shard(@m)\n  return %r\n}", 4);
  EXPECT_EQ(f.exprs().back().op->name, "reshape");
}

// Another reader has %b sharded, which the user has not.
TEST(InsertResharding, AReshapeOfWhatFollowsAnotherReaderAsksNothingOfSizes) {
  Fusion f = lowered(R"(
mesh @m = [x=3]
fusion f(%x: f32[n*h] shard(@m, 0: x), %a: f32[n*h]) with n = 3, h = 2 {
  %b = add(%a, 1)
  %c = mul(%b, %x)
  %r = reshape(%b, sizes=[n, h])
  return %c, %r
})",
                     3);
  EXPECT_EQ(f.exprs().back().op->name, "reshape");
  EXPECT_TRUE(f.value(f.find("r").value()).tensor.sharding->isReplicated());
  for (const SizeGuard& guard : f.guards) {
    EXPECT_EQ(guard.source.find("divide evenly"), std::string::npos) << guard.source;
  }
}

TEST(InsertResharding, ASplitThatSaysSoIsGatheredWhereItIsUneven) {
  const std::string text = R"(
mesh @m = [x=3]
fusion f(%a: f32[12] shard(@m, 0: x)) {
  %r = reshape(%a, sizes=[ROWS, 12/ROWS], gather_uneven=true)
  return %r
})";
  const auto with = [&](const std::string& rows) {
    std::string result = text;
    for (size_t at; (at = result.find("ROWS")) != std::string::npos;) result.replace(at, 4, rows);
    return listing(lowered(result, 3));
  };
  EXPECT_EQ(with("6"), (Lines{"r = reshape(a)"}));
  EXPECT_EQ(with("2"), (Lines{"a_gathered = allgather(a, 0 x)", "r = reshape(a_gathered)"}));
}

TEST(InsertResharding, TellsStepsBytesAndOtherWays) {
  Fusion f = lowered(R"(
mesh @m = [x=4]
fusion f(%x: f32[16, 32] shard(@m, 1: x), %w: f32[32, 8] shard(@m, 0: x)) {
  %y = matmul(%x, %w)
  return %y
})",
                     4);
  const std::string text = dumpResharding(f);
  EXPECT_NE(text.find("%y: shard(@m) partial(sum: x) -> shard(@m): allreduce over x (768 bytes)\n"),
            std::string::npos)
      << text;
}

// One allreduce for the sum of three products.
TEST(JoinReductions, OfASumOfPartialProducts) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, k] shard(@m, 1: x), %b: f32[t, k] shard(@m, 1: x),
         %w: f32[k, n] shard(@m, 0: x), %v: f32[k, n] shard(@m, 0: x), %r: f32[t, n]) {
  %p = matmul(%a, %w)
  %q = matmul(%b, %v)
  %o = matmul(%a, %v)
  %pq = add(%p, %q)
  %y = sub(%pq, %o)
  %z = add(%y, %r)
  return %z
})",
                     2);
  EXPECT_EQ(listing(f), (Lines{"p_partial = matmul(a, w)", "q_partial = matmul(b, v)",
                               "o_partial = matmul(a, v)", "pq_partial = add(p_partial, q_partial)",
                               "y_partial = sub(pq_partial, o_partial)",
                               "y = allreduce(y_partial x)", "z = add(y, r)"}));
}

TEST(JoinReductions, NotOfWhatIsReadElsewhere) {
  Fusion f = lowered(R"(
mesh @m = [x=2]
fusion f(%a: f32[t, k] shard(@m, 1: x), %w: f32[k, n] shard(@m, 0: x),
         %v: f32[k, n] shard(@m, 0: x)) {
  %p = matmul(%a, %w)
  %q = matmul(%a, %v)
  %y = add(%p, %q)
  return %y, %q
})",
                     2);
  EXPECT_EQ(listing(f),
            (Lines{"p_partial = matmul(a, w)", "p = allreduce(p_partial x)",
                   "q_partial = matmul(a, v)", "q = allreduce(q_partial x)", "y = add(p, q)"}));
}

}  // namespace
}  // namespace heddle::reshard_steps_test
