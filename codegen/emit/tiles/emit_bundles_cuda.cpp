// Writes the CUDA text of the statements that differ for bundles of rows (RowLayout::bundled).
#include "codegen/emit/tiles/cuda_tile_emitter.h"

namespace heddle::codegen {

// Writes the variables that say which bundle this thread processes, which share of the vectors of
// the bundle, and how many rows of the bundle exist.
void CudaTileEmitter::writeBundleRoles() {
  const int32_t cluster = layout_.cluster;
  if (cluster > 1) arriveInCluster();
  out_.line(fmt::format(
      "[[maybe_unused]] const int share = hd::thread() / {}{};", layout_.rows,
      cluster > 1 ? fmt::format(" + rank * {}", layout_.threads / cluster) : std::string()));
  out_.line(fmt::format("[[maybe_unused]] const int row = hd::thread() % {};", layout_.rows));
  out_.line(fmt::format("const Index kept = (Index){} * {} + row;",
                        cluster > 1 ? fmt::format("(hd::block() / {})", cluster) : "hd::block()",
                        layout_.rows));
  out_.line("const bool active = kept < kept_items;");
  out_.line("const Index row_end = active ? reduced_items : 0;");
  writeCoordinates(out_, frame_.kept);
  declareCount();
}

// Writes the loop over the vectors of this thread, for tiles in shared memory. Only the last vector
// of a thread may be missing, so the text handles it after the loop. The loop then has no branches,
// and a thread can begin several loads before it waits for the first one.
void CudaTileEmitter::writeHeldVectors(const std::function<void()>& vector) {
  const int32_t always = layout_.full ? layout_.registers : layout_.registers - 1;
  const auto write = [&] {
    out_.line(fmt::format("const Index reduced = u * {} + share;", layout_.threads));
    writeCoordinates(out_, frame_.reduced);
    vector();
  };
  if (always > 0) {
    out_.open("if (active) {");
    out_.line("#pragma unroll 4");
    out_.open(fmt::format("for (int u = 0; u < {}; ++u) {{", always));
    write();
    out_.close();
    out_.close();
  }
  if (layout_.full) return;
  out_.open(fmt::format("if ({} + share < row_end) {{", always * layout_.threads));
  out_.line(fmt::format("constexpr int u = {};", always));
  write();
  out_.close();
}

// Returns whether a load of a bundle uses the fast function for unaligned vectors
// (hd::loadPairs()).
bool CudaTileEmitter::loadsPairs(const LoadTile& load) const {
  const Access& access = frame_.access(load.tensor);
  return layout_.bundled && access.lane == LaneStride::One && !isVectorized(access) &&
         layout_.vector >= 4 && sizeOf(access.dtype) == 2;
}

// Calls write() to write the load of each vector of a tile. If the loads use hd::loadPairs() and a
// vector may be incomplete, the text has a second version for complete vectors, which has no
// branches. A thread can then begin several loads before it waits for the first one.
void CudaTileEmitter::loadBundle(const LoadTile& load, const std::function<void()>& write) {
  if (!loadsPairs(load) || layout_.exact) return writeVectors({}, {}, write);
  out_.open(fmt::format("if (count == {}) {{", layout_.vector));
  out_.line(fmt::format("constexpr int count = {};", layout_.vector));
  writeVectors({}, {}, write);
  out_.close();
  out_.open("else {");
  writeVectors({}, {}, write);
  out_.close();
}

void CudaTileEmitter::loadOfBundle(const LoadTile& load, const char* name) {
  if (!tile(load.tile).per_row) return loadBundle(load, [&] { writeLoad(load, "u", name); });
  out_.open("if (active) {");
  writeLoad(load, "0", name);
  out_.close();
}

// Writes a map that runs once per row, in a loop over the rows of the bundle. If the map stores
// outputs, only one thread of the bundle runs it. Otherwise all threads of the bundle run it.
void CudaTileEmitter::writeBundleMap(const MapTiles& map) {
  for (const MapTiles::Result& result : map.results) declareTile(result.tile, 1);
  out_.open(map.body.stores.empty() ? "if (active) {" : "if (active && share == 0) {");
  out_.line("[[maybe_unused]] constexpr int u = 0;");
  mapLanes(map);
  out_.close();
}

}  // namespace heddle::codegen
