// Tests the programs of the family "loops", and the rules that verify() has for such programs.
#include "codegen/families/loops.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::codegen::loops_test {
namespace {

constexpr const char* kPointwise =
    "heddle 1 fusion f(%x: f32[n, m], %b: f32[m]) { %y = add(%x, %b) return %y }";
constexpr const char* kReduction =
    "heddle 1 fusion f(%x: f32[n, m], %b: f32[n]) { %s = sum(%x, axes=[1]) %y = add(%s, %b) "
    "return %y }";

// The programs of a kernel: one, or two if the reduced elements are divided into ranges.
struct Programs {
  TileProgram first;
  TileProgram second;
};

Programs programsOf(const char* text, std::vector<TensorDesc> in, TensorDesc out,
                    Target target = Target::Cuda) {
  const Fusion fusion = parseFusion(text, "f");
  const std::vector<TensorDesc> outs{std::move(out)};
  const Analysis analysis = analyze(fusion);
  const Space space =
      coalesce(fusion, analysis, axisExtents(fusion, analysis, in, outs, {}), in, outs);
  LoopPlan plan = planLoops(fusion, analysis, space, target, "", nullptr);
  Programs programs{buildLoops(fusion, plan.first), {}};
  if (plan.in_ranges) programs.second = buildLoops(fusion, plan.second);
  return programs;
}

TileProgram pointwise() {
  return programsOf(kPointwise, {denseDesc(DType::F32, {8, 64}), denseDesc(DType::F32, {64})},
                    denseDesc(DType::F32, {8, 64}))
      .first;
}

TileProgram reduction() {
  return programsOf(kReduction, {denseDesc(DType::F32, {512, 64}), denseDesc(DType::F32, {512})},
                    denseDesc(DType::F32, {512}))
      .first;
}

// Sums of few long rows. Each row is divided into ranges.
Programs ranges() {
  return programsOf(kReduction, {denseDesc(DType::F32, {2, 1 << 22}), denseDesc(DType::F32, {2})},
                    denseDesc(DType::F32, {2}));
}

TEST(LoopsProgram, APointwiseKernelIsOneMapThatLoadsItsTiles) {
  const TileProgram program = pointwise();
  ASSERT_EQ(program.statements.size(), 1U);
  const auto& map = std::get<MapTiles>(program.statements[0]);
  EXPECT_FALSE(map.per_row);
  ASSERT_EQ(map.loads.size(), 2U);
  EXPECT_EQ(program.tiles[map.loads[0].tile].name + program.tiles[map.loads[1].tile].name, "xb");
  EXPECT_EQ(map.body.stores.size(), 1U);
}

TEST(LoopsProgram, AReductionReducesCombinesAndMapsItsResults) {
  const TileProgram program = reduction();
  ASSERT_EQ(program.statements.size(), 3U);
  EXPECT_EQ(std::get<ReduceTiles>(program.statements[0]).loads.size(), 1U);
  EXPECT_EQ(std::get<CombineParts>(program.statements[1]).accumulators.size(), 1U);
  const auto& map = std::get<MapTiles>(program.statements[2]);
  EXPECT_TRUE(map.per_row);
  ASSERT_EQ(map.loads.size(), 1U);
  EXPECT_EQ(program.tiles[map.loads[0].tile].name, "b");
  EXPECT_TRUE(program.tiles[map.loads[0].tile].per_row);
}

TEST(LoopsProgram, RangesStoreStatesThatASecondProgramReduces) {
  const Programs programs = ranges();
  ASSERT_EQ(programs.first.statements.size(), 3U);
  const auto& store = std::get<StoreStates>(programs.first.statements[2]);
  ASSERT_EQ(store.tensors.size(), 1U);
  EXPECT_TRUE(programs.first.frame.access(store.tensors[0]).output);
  ASSERT_EQ(programs.second.statements.size(), 3U);
  EXPECT_EQ(programs.second.tiles[TileId(0)].name, "partial");
  EXPECT_TRUE(std::get<MapTiles>(programs.second.statements[2]).per_row);
}

TEST(LoopsProgram, BothTargetsHaveTheSameStatements) {
  const std::vector<TensorDesc> in{denseDesc(DType::F32, {512, 64}), denseDesc(DType::F32, {512})};
  const TensorDesc out = denseDesc(DType::F32, {512});
  const TileProgram cuda = programsOf(kReduction, in, out).first;
  const TileProgram cpp = programsOf(kReduction, in, out, Target::Cpp).first;
  ASSERT_EQ(cuda.statements.size(), cpp.statements.size());
  for (size_t i = 0; i < cuda.statements.size(); ++i) {
    EXPECT_EQ(cuda.statements[i].index(), cpp.statements[i].index());
  }
}

void expectFault(const char* what, TileProgram program,
                 const std::function<void(TileProgram&)>& change) {
  EXPECT_NO_THROW(verify(program)) << what;
  change(program);
  EXPECT_THROW(verify(program), InternalError) << what;
}

TEST(LoopsProgram, StatementsAtWrongPositionsAreRejected) {
  expectFault("no statement", pointwise(), [](TileProgram& p) { p.statements.clear(); });
  expectFault("two maps", pointwise(),
              [](TileProgram& p) { p.statements.push_back(p.statements[0]); });
  expectFault("a map before the reduction", reduction(),
              [](TileProgram& p) { std::swap(p.statements[0], p.statements[2]); });
  expectFault("states that are not combined", reduction(),
              [](TileProgram& p) { p.statements.erase(p.statements.begin() + 1); });
  expectFault("a reduction that stores nothing", reduction(),
              [](TileProgram& p) { p.statements.pop_back(); });
  expectFault("a loop over parts of a row", reduction(),
              [](TileProgram& p) { p.statements.emplace_back(LoopOverRow{}); });
  expectFault("a map of elements after the reduction", reduction(),
              [](TileProgram& p) { std::get<MapTiles>(p.statements[2]).per_row = false; });
}

TEST(LoopsProgram, WrongTilesTensorsAndSchedulesAreRejected) {
  expectFault("a tile that no statement loads", pointwise(),
              [](TileProgram& p) { std::get<MapTiles>(p.statements[0]).loads.pop_back(); });
  expectFault("a tile of the row in a body per row", reduction(), [](TileProgram& p) {
    p.tiles[std::get<MapTiles>(p.statements[2]).loads[0].tile].per_row = false;
  });
  expectFault("a load of an output", pointwise(), [](TileProgram& p) {
    auto& map = std::get<MapTiles>(p.statements[0]);
    map.loads[0].tensor = map.body.stores[0].tensor;
  });
  expectFault("states in an input", ranges().first, [](TileProgram& p) {
    p.frame.accesses[std::get<StoreStates>(p.statements[2]).tensors[0]].output = false;
  });
  expectFault("a state without a tensor", ranges().first,
              [](TileProgram& p) { std::get<StoreStates>(p.statements[2]).tensors.clear(); });
  expectFault("no lanes", pointwise(), [](TileProgram& p) { p.items->lanes = 0; });
  expectFault("a schedule for another target", pointwise(),
              [](TileProgram& p) { p.items->target = Target::Cpp; });
  expectFault("a schedule without a reduction", reduction(),
              [](TileProgram& p) { p.items->kind = ScheduleKind::Pointwise; });
}

}  // namespace
}  // namespace heddle::codegen::loops_test
