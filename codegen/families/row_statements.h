#pragma once

#include "codegen/families/row_values.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The statements of a row kernel, before sizes decide its layout.
struct RowStatements {
  IdVector<TileId, Tile> tiles;
  std::vector<Statement> statements;
  IdVector<AccumulatorId, Accumulator> accumulators;
  int64_t loaded = 0;  // bytes per element that the kernel reads at its start
};

// How the statements of a row kernel are written.
struct RowForm {
  // true: every sweep over the row is a loop, and no tile along the row lives from one sweep to the
  // next. false: the kernel loads each tile once, and computes each value in `kept` only once.
  bool looped = false;
  // true: divisions by a value per row become multiplications by its reciprocal, with the same
  // results (hd::divided() in codegen/runtime/cuda_math.h).
  bool reciprocals = false;
  // true: the tiles of a row are loaded while the previous row is processed. Tiles that are the
  // same for all rows are loaded once (LoadTile::When).
  bool ahead = false;
  std::vector<ValueId> kept;  // keptValues() (codegen/families/row_values.h)
};

RowStatements writeRowStatements(const Fusion& segment, const Analysis& analysis,
                                 const Space& space, const RowValues& values, const RowForm& form);

}  // namespace heddle::codegen
