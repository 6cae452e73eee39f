// Tests the rules for programs whose rows are divided among blocks (codegen/tile/divided_rows.h).
#include "codegen/tile/divided_rows.h"

#include <gtest/gtest.h>

#include <functional>

#include "codegen/families/rows/rows.h"
#include "codegen/plan/generated.h"
#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::codegen::divided_rows_test {
namespace {

// Returns the program of a softmax whose rows have several parts. A second output has one element
// per row.
TileProgram program() {
  const Fusion fusion = parseFusion(
      "heddle 1 fusion f(%x: f32[n, m]) { %m = max(%x, axes=[1], keepdim=true) %d = sub(%x, %m) "
      "%e = exp(%d) %s = sum(%e, axes=[1], keepdim=true) %y = div(%e, %s) return %y, %m }",
      "f");
  const std::vector<TensorDesc> in{denseDesc(DType::F32, {50, 400000})};
  const std::vector<TensorDesc> out{in[0], denseDesc(DType::F32, {50, 1})};
  const Analysis analysis = analyze(fusion);
  const Space space =
      coalesce(fusion, analysis, axisExtents(fusion, analysis, in, out, {}), in, out);
  KernelChoice made;
  return buildRows(fusion, analysis, space, Target::Cuda, "k", nullptr, made).value();
}

void expectFault(const char* what, const std::function<void(TileProgram&)>& change) {
  TileProgram changed = program();
  change(changed);
  EXPECT_THROW(verify(changed), InternalError) << what;
}

TEST(DividedRowsProgram, UnsuitableProgramsAreRejected) {
  EXPECT_NO_THROW(verify(program()));
  expectFault("two rows per block", [](TileProgram& p) { p.layout.rows = 2; });
  expectFault("one warp", [](TileProgram& p) { p.layout.threads = 32; });
  expectFault("no blocks", [](TileProgram& p) { p.layout.blocks = 0; });
  expectFault("a CPU program", [](TileProgram& p) { p.target = Target::Cpp; });
  expectFault("shared memory", [](TileProgram& p) { p.layout.shared_bytes = 1024; });
  expectFault("another number of sweeps", [](TileProgram& p) { ++p.layout.divided.sweeps; });
  expectFault("another number of accumulators",
              [](TileProgram& p) { ++p.layout.divided.accumulators; });
  expectFault("a reduction of a complete row", [](TileProgram& p) {
    const LoopOverRow loop = std::get<LoopOverRow>(p.statements.at(0));
    p.statements[0] = loop.statements.at(0);
  });
  expectFault("an output per row before the last sweep", [](TileProgram& p) {
    std::rotate(p.statements.rbegin(), p.statements.rbegin() + 1, p.statements.rend());
  });
}

// A sweep runs more than one row behind the sweep before it: by the parts of a row, plus the number
// of blocks per sweep, rounded up.
TEST(DividedRowsProgram, PassesAreMoreThanARowApart) {
  EXPECT_EQ(distanceOf({64, 2, 2}, 264), 64 + 132);
  EXPECT_EQ(distanceOf({3, 3, 1}, 7), 3 + 3);
  EXPECT_EQ(distanceOf({5, 2, 1}, 1), 5 + 1);
}

// The workspace begins with the next ticket (128 bytes) and one counter of 4 bytes per row.
TEST(DividedRowsProgram, TheWorkspaceHasASlotPerAccumulatorRowAndPart) {
  EXPECT_EQ(boardBytes({4, 2, 3}, 8), 32 * (5 + 3 * 8 * 4));
  EXPECT_EQ(boardBytes({1, 2, 1}, 1), 32 * (5 + 1));
}

}  // namespace
}  // namespace heddle::codegen::divided_rows_test
