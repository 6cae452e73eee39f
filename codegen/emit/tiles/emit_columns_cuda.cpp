// Writes CUDA text of a tile program of rows that also sums columns: the loop over the rows of a
// block, the loads of the next row, and the sums.
#include <algorithm>

#include "codegen/emit/tiles/cuda_tile_emitter.h"

namespace heddle::codegen {

void CudaTileEmitter::openColumns() {
  out_.line(fmt::format("const Index split = (Index)hd::block() * {} + row;", layout_.rows));
  for (const ColumnSums& column : program_.columns) {
    out_.line(fmt::format("{} sums{}[{}][{}];", stateType(column.accumulator), column.tensor,
                          layout_.registers, layout_.vector));
    forColumns(fmt::format("sums{}[u][i] = {};", column.tensor, identityText(column.accumulator)));
  }
  loadOnce();
  for (const LoadTile& load : loadsAt(LoadTile::When::Ahead)) declareLoaded(load, "next");
  loadAhead("(Index)hd::block()");
  out_.open(
      fmt::format("for (Index group = hd::block(); group * {0} < kept_items; group += "
                  "hd::blocks()) {{",
                  layout_.rows));
  openRow("group");
  for (const LoadTile& load : loadsAt(LoadTile::When::Ahead)) takeLoaded(load);
  loadAhead("(group + hd::blocks())");
}

// Writes the variables that say which row of a group this thread computes. A group consists of the
// rows that a block computes at the same time.
void CudaTileEmitter::openRow(const std::string& group) {
  out_.line(fmt::format("const Index kept = {} * {} + row;", group, layout_.rows));
  out_.line("const bool active = kept < kept_items;");
  out_.line("const Index row_end = active ? reduced_items : 0;");
  writeCoordinates(out_, frame_.kept);
}

std::vector<LoadTile> CudaTileEmitter::loadsAt(LoadTile::When when) const {
  std::vector<LoadTile> loads;
  for (const Statement& statement : program_.statements) {
    // The function returns only loads.
    const auto* load = std::get_if<LoadTile>(&statement);
    if (load != nullptr && load->when == when) loads.push_back(*load);
  }
  return loads;
}

void CudaTileEmitter::loadOnce() {
  const std::vector<LoadTile> loads = loadsAt(LoadTile::When::Once);
  for (const LoadTile& load : loads) declareLoaded(load, "tile");
  if (loads.empty()) return;
  out_.open("{");
  out_.line("const bool active = true;");
  out_.line("const Index row_end = reduced_items;");
  for (const LoadTile& load : loads) loadInto(load, "tile");
  out_.close();
}

// Writes the loads of a row of the group `group` into the variables `next`. The threads wait for
// the values only when they use them.
void CudaTileEmitter::loadAhead(const std::string& group) {
  const std::vector<LoadTile> loads = loadsAt(LoadTile::When::Ahead);
  if (loads.empty()) return;
  out_.open("{");
  openRow(group);
  for (const LoadTile& load : loads) loadInto(load, "next");
  out_.close();
}

void CudaTileEmitter::takeLoaded(const LoadTile& load) {
  declareLoaded(load, "tile");
  if (tile(load.tile).per_row) {
    out_.line(fmt::format("tile{0} = next{0};", load.tile));
    return;
  }
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int u = 0; u < {}; ++u) tile{}[u] = next{}[u];", layout_.registers,
                        load.tile, load.tile));
}

void CudaTileEmitter::forColumns(const std::string& statement) {
  out_.line("#pragma unroll");
  out_.open(fmt::format("for (int u = 0; u < {}; ++u) {{", layout_.registers));
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int i = 0; i < {}; ++i) {}", layout_.vector, statement));
  out_.close();
}

// Returns whether a barrier must follow each row, because the next row uses the same shared memory
// for the parts of accumulators. With several CombineParts per row, this barrier is not needed:
// each CombineParts has its own memory and its own barrier, so between the reads of this memory and
// the next stores to it there is a barrier of another CombineParts.
bool CudaTileEmitter::needsBarrierAfterRow() const {
  const auto& all = program_.statements;
  const auto combines = std::count_if(all.begin(), all.end(), [](const Statement& statement) {
    return std::holds_alternative<CombineParts>(statement);  // no other statement has a barrier
  });
  return layout_.threads > 32 && combines == 1;
}

// Closes the loop over the rows. The threads that share a row then store their sums, which are one
// part of the sums of the columns (ColumnSums).
void CudaTileEmitter::closeColumns() {
  if (needsBarrierAfterRow()) out_.line("hd::barrier();");
  out_.close();
  out_.line("const bool active = true;");
  out_.line("const Index row_end = reduced_items;");
  writeVectors({}, {}, [&] {
    for (const ColumnSums& column : program_.columns) {
      const Access& access = frame_.access(column.tensor);
      out_.line(fmt::format("hd::store<{}>({} + ({}), sums{}[u], {}, count);", layout_.vector,
                            access.name, (access.kept_offset + access.reduced_offset).str(),
                            column.tensor, alignmentOf(access)));
    }
  });
}

}  // namespace heddle::codegen
