#pragma once

#include "codegen/families/row_values.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The statements of a row kernel, before sizes decide its layout.
struct RowStatements {
  std::vector<Tile> tiles;
  std::vector<Statement> statements;
  std::vector<Accumulator> accumulators;
  int64_t loaded = 0;  // bytes per element that the kernel reads at its start
};

// Writes the statements. With `looped`, every pass over the row is a loop, and no tile lives from
// one pass to the next. Otherwise the kernel loads each tile once and keeps the values `kept`.
RowStatements writeRowStatements(const Fusion& segment, const Analysis& analysis,
                                 const Space& space, const RowValues& values,
                                 const std::vector<ValueId>& kept, bool looped);

}  // namespace heddle::codegen
