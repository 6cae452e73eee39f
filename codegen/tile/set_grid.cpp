#include <algorithm>

#include "codegen/tile/program.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// The largest number of blocks of a pointwise program of items. Many blocks with few items keep the
// memory busier than few blocks with many items. If the items need more blocks than this, the
// threads of a block compute further items in a loop.
constexpr int64_t kMostPointwiseBlocks = int64_t{1} << 20;

}  // namespace

void setGrid(const RowLayout& layout, Target target, int64_t rows, int64_t items_per_tile,
             LaunchStage& stage) {
  if (target == Target::Cpp) {
    stage.grid = ceilDiv(rows, items_per_tile);
    return;
  }
  stage.block = layout.blockThreads();
  stage.shared_bytes = layout.shared_bytes;
  stage.grid = layout.blocks > 0 ? layout.blocks : ceilDiv(rows, layout.rows) * layout.cluster;
  stage.grid_y = layout.row_blocks;
  if (layout.divided.parts > 0) stage.cleared_bytes = boardBytes(layout.divided, rows);
}

void setGrid(const SquareLayout& square, Target target, int64_t items_per_tile,
             LaunchStage& stage) {
  const int64_t squares = squaresOf(square);
  if (target == Target::Cpp) {
    stage.grid = ceilDiv(squares, items_per_tile);
    return;
  }
  stage.block = kSquareThreads;
  stage.grid = squares;
}

void setGrid(const Schedule& s, int64_t kept_items, LaunchStage& stage) {
  if (s.target == Target::Cpp) {
    stage.grid = ceilDiv(kept_items * s.splits, s.items_per_tile);
    return;
  }
  stage.block = s.block;
  if (s.kind == ScheduleKind::Pointwise) {
    stage.grid = std::min(ceilDiv(kept_items, int64_t{s.block} * s.unroll), kMostPointwiseBlocks);
  } else {
    stage.grid = ceilDiv(kept_items, int64_t{s.columnsOfBlock()});
    stage.grid_y = static_cast<int32_t>(s.splits);
  }
}

LaunchStage makeStage(TileProgram& program) {
  LaunchStage stage;
  stage.entry = program.frame.entry;
  program.frame.args.moveInto(stage);
  const int64_t kept_items = program.frame.kept_items.hi();
  const int64_t items_per_tile = program.frame.items_per_tile.hi();
  if (program.items) {
    setGrid(*program.items, kept_items, stage);
  } else if (program.square) {
    setGrid(*program.square, program.target, items_per_tile, stage);
  } else {
    setGrid(program.layout, program.target, kept_items, items_per_tile, stage);
  }
  return stage;
}

}  // namespace heddle::codegen
