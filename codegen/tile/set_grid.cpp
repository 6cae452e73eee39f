#include "codegen/tile/program.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {

void setGrid(const RowLayout& layout, Target target, int64_t rows, int64_t items_per_tile,
             LaunchStage& stage) {
  if (target == Target::Cpp) {
    stage.grid = ceilDiv(rows, items_per_tile);
    return;
  }
  stage.block = layout.rows * layout.threads;
  stage.shared_bytes = layout.shared_bytes;
  stage.grid = layout.blocks > 0 ? layout.blocks : ceilDiv(rows, layout.rows);
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

}  // namespace heddle::codegen
