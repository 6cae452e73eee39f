#pragma once

#include "codegen/families/rows/row_values.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The statements of a kernel that processes rows (codegen/families/rows/rows.h). They depend on a
// RowForm, but not on sizes.
struct RowStatements {
  IdVector<TileId, Tile> tiles;
  std::vector<Statement> statements;
  IdVector<AccumulatorId, Accumulator> accumulators;
  // Bytes per element of the row that the LoadTile statements before the first sweep read. Tiles
  // that are loaded once for all rows do not count.
  int64_t loaded = 0;
};

// How the statements of a kernel that processes rows are written. A *sweep* is one pass over the
// elements of a row.
struct RowForm {
  // A tile *along the row* has one element per element of the row.
  // - true: every sweep is a loop (LoopOverRow), and no tile along the row lives from one sweep to
  //   the next. `kept` must be empty.
  // - false: the kernel loads each input that differs both between rows and along the innermost
  //   axis of the row once per row. It computes each value in `kept` once per row.
  bool looped = false;
  // true: f32 divisions by a value per row, in bodies along the row, become calls of hd::divided()
  // or hd::nearDivided() (codegen/runtime/cuda_math.h). These multiply by the reciprocal, which is
  // computed once per row. If `ahead` is true, f32 divisions by a scalar also become such calls, in
  // bodies that run once per row.
  bool reciprocals = false;
  // true: the kernel loads the tiles of a row while it processes the previous row. It loads tiles
  // that are the same for all rows once (LoadTile::When).
  bool ahead = false;
  std::vector<ValueId> kept;  // values to keep: result of keptValues() (row_values.h)
};

// Writes the statements that compute the segment. `values` is the result of rowValuesOf(), and
// `space` must have a reduced axis (withRows()).
RowStatements writeRowStatements(const Fusion& segment, const Analysis& analysis,
                                 const Space& space, const RowValues& values, const RowForm& form);

}  // namespace heddle::codegen
