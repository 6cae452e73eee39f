#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/accumulator_text.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/tiles/emit_row_combine.h"
#include "codegen/tile/program.h"
#include "ir/base/check.h"

namespace heddle::codegen {

// Writes the CUDA text of a tile program with rows, statement by statement.
class CudaTileEmitter {
 public:
  explicit CudaTileEmitter(const TileProgram& program)
      : program_(program),
        frame_(program.frame),
        layout_(program.layout),
        combiner_(out_, layout_, frame_.accumulators) {}

  std::string emit() {
    const std::string args = "Args_" + frame_.entry;
    std::string text = frame_.args.structText(args);
    openCudaEntry(out_, frame_.entry, launchBounds(), layout_.cluster);
    out_.line(fmt::format("typedef {} Index;", frame_.wide_index ? "long long" : "int"));
    writeArguments(out_, frame_);
    if (isDivided()) {
      writeItems();
    } else {
      writeRoles();
      if (layout_.shifted) writeShift();
      for (const Statement& statement : program_.statements) write(statement);
    }
    if (!program_.columns.empty()) closeColumns();
    HEDDLE_CHECK(held_bytes_ == layout_.shared_bytes,
                 "the tiles take {} bytes of shared memory, but the layout has {}", held_bytes_,
                 layout_.shared_bytes);
    out_.close();
    return text + out_.take();
  }

 private:
  const Tile& tile(TileId id) const { return program_.tiles[id]; }

  bool isVectorized(const Access& access) const {
    if (layout_.vector == 1 || access.lane != LaneStride::One) return false;
    return layout_.shifted || access.aligned_items;
  }

  void writeShift();
  std::string launchBounds() const;

  // The functions for rows that are divided among blocks (emit_divided_cuda.cpp).
  bool isDivided() const { return layout_.divided.parts > 0; }
  void writeItems();
  void openItem();
  void writeSweep(int sweep);
  void writeEarlier(const Statement& statement);
  void fetch(const CombineParts& combine);
  void publish(const CombineParts& combine);
  void loadEarly(int sweep);
  void loadEarly(const LoadTile& load);
  void loadTogether(const std::vector<LoadTile>& loads);
  void findLastItem();
  bool streamsLastSweep() const { return is_last_sweep_ && layout_.divided.streams; }
  bool streamsLoad(const Access& access) const {
    return streamsLastSweep() || (layout_.streams && access.once);
  }

  // Writes the variables that say which row this thread processes, and which share of the vectors
  // of the row.
  void writeRoles();
  void arriveInCluster();
  void writeBundleRoles();
  void writeClusterRoles();

  // For a program with column sums: declares the sums, writes the loads that precede the first row,
  // and opens the loop over the groups of rows that the block processes. openRow() describes a
  // group.
  void openColumns();
  void openRow(const std::string& group);
  std::vector<LoadTile> loadsAt(LoadTile::When when) const;
  void loadOnce();
  void loadAhead(const std::string& group);
  void takeLoaded(const LoadTile& load);

  void forColumns(const std::string& statement);

  bool needsBarrierAfterRow() const;
  void closeColumns();

  const ColumnSums* columnOf(int tensor) const {
    for (const ColumnSums& column : program_.columns) {
      if (column.tensor == tensor) return &column;
    }
    return nullptr;
  }

  void write(const Statement& statement) {
    // Only loads copy to shared memory. Every other statement may read the copied tiles.
    if (is_copying_ && !std::holds_alternative<LoadTile>(statement)) {
      out_.line("hd::awaitCopies();");
      is_copying_ = false;
    }
    std::visit([this](const auto& one) { this->write(one); }, statement);
  }

  // Writes the loop over the vectors of this thread. For each vector, the loop executes `loads`,
  // reads the tiles in shared memory that the body `reads` needs, and executes the text that body()
  // writes. In the text, `u` is the number of the vector, and element i belongs to the row if i <
  // `count`. If rows are shifted (RowLayout::shifted), i must also be at least `first`. A shifted
  // row has at most two incomplete vectors, so the text has a second version without masks for
  // complete vectors.
  template <class Write>
  void writeVectors(const std::vector<LoadTile>& loads, const Body& reads, Write&& body) {
    if (layout_.bundled && layout_.shared_bytes > 0) {
      return writeHeldVectors([&] { writeVector(loads, reads, body); });
    }
    // Only registers need a completely unrolled loop: a thread cannot index them at run time.
    openVectorLoop(layout_.shared_bytes > 0 ? "#pragma unroll 4" : "#pragma unroll");
    if (layout_.shifted) {
      out_.open(isDivided() ? "if (reduced < row_end) {"
                : knowsVectors()
                    ? fmt::format("if ((active && u + 1 < {}) || reduced < vectors) {{",
                                  layout_.registers)
                    : "if (reduced < vectors) {");
      writeComplete(loads, reads, body);
      out_.open("else {");
      writeIncomplete(loads, reads, body);
      out_.close();
    } else {
      // Outside of a LoopOverRow, only the last vector of a thread may be after the end of the row,
      // so the other vectors need no comparison.
      out_.open(in_loop_       ? "if (reduced < row_end) {"
                : layout_.full ? "if (active) {"
                               : fmt::format("if ((active && u + 1 < {}) || reduced < row_end) {{",
                                             layout_.registers));
      writeCoordinates(out_, frame_.reduced);
      writeCount();
      writeVector(loads, reads, body);
    }
    out_.close();
    out_.close();
  }

  // Returns whether only the last vector of a thread may be the last one of a shifted row, or after
  // it. The other vectors then need no comparison with the number of vectors.
  // For tiles in shared memory, the compiler does not unroll the loop completely, so that the
  // comparisons with `u` would cost more than they save.
  bool knowsVectors() const {
    return layout_.shifted && layout_.full && !in_loop_ && layout_.shared_bytes == 0;
  }

  void writeHeldVectors(const std::function<void()>& vector);

  void openVectorLoop(const char* pragma) {
    out_.line(pragma);
    out_.open(fmt::format("for (int u = 0; u < {}; ++u) {{", layout_.registers));
    out_.line(fmt::format("const Index reduced = {}u * {} + share;", in_loop_ ? "part + " : "",
                          layout_.threads));
    if (!layout_.shifted) return;
    out_.line(fmt::format("const Index {} = reduced * {} - shift;", frame_.reduced[0].name,
                          layout_.vector));
  }

  template <class Write>
  void writeComplete(const std::vector<LoadTile>& loads, const Body& reads, Write&& body) {
    out_.open(
        knowsVectors()
            ? fmt::format("if ((u > 0 || share > 0) && (u + 1 < {} || reduced + 1 < vectors)) {{",
                          layout_.registers)
            : "if (reduced > 0 && reduced + 1 < vectors) {");
    out_.line("constexpr int first = 0;");
    out_.line(fmt::format("constexpr int count = {};", layout_.vector));
    writeVector(loads, reads, body);
    out_.close();
  }

  template <class Write>
  void writeIncomplete(const std::vector<LoadTile>& loads, const Body& reads, Write&& body) {
    out_.line(fmt::format("const int first = {0} < 0 ? -(int){0} : 0;", frame_.reduced[0].name));
    writeCount();
    writeVector(loads, reads, body);
  }

  // Returns the expression of the index of vector `u` of this thread in a tile in shared memory.
  std::string heldIndex() const {
    return layout_.bundled || layout_.cluster > 1
               ? fmt::format("u * {} + hd::thread()", layout_.blockThreads())
               : fmt::format("u * {} + share", layout_.threads);
  }

  // Returns the tiles in shared memory that `body` reads.
  std::set<TileId> heldTilesOf(const Body& body) const;

  // All vectors of a bundle have the same number of lanes, which writeBundleRoles() declares.
  void writeCount() {
    if (!layout_.bundled) declareCount();
  }

  void declareCount() {
    const std::string count = layout_.exact
                                  ? std::to_string(layout_.vector)
                                  : fmt::format("(int)hd::smaller<Index>({}, lane_extent - {})",
                                                layout_.vector, frame_.lane_start.str());
    out_.line(fmt::format("[[maybe_unused]] const int count = {};", count));
  }

  template <class Write>
  void writeVector(const std::vector<LoadTile>& loads, const Body& reads, Write&& body) {
    if (layout_.shifted) {
      out_.line("[[maybe_unused]] const unsigned valid = (1u << count) - (1u << first);");
    }
    for (const LoadTile& load : loads) {
      if (frame_.access(load.tensor).lane == LaneStride::Zero) one_lane_.insert(load.tile);
      one_vector_.insert(load.tile);
      declareLoadedTile(load.tile, 1);
      writeLoad(load, "0");
    }
    for (TileId id : heldTilesOf(reads)) {
      one_vector_.insert(id);
      out_.line(
          fmt::format("hd::Lanes<{0}, {1}> tile{2}[1] = {{hd::HeldLanes<{0}, {1}>(held{2}[{3}])"
                      ".lanes}};",
                      layout_.vector, storedType(tile(id).dtype), id, heldIndex()));
    }
    body();
  }

  // Opens the loop over the lanes of a vector. With `masked`, the loop skips lanes outside of the
  // row. A map needs no mask if it does not read memory at computed indices (readsMemory()) and
  // adds to no column sums: nothing uses its results in these lanes.
  void openLanes(bool masked) {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int lane = 0; lane < {}; ++lane) {{", layout_.vector));
    if (layout_.exact || !masked) return;
    out_.line(layout_.shifted ? "if ((valid >> lane & 1u) == 0) continue;"
                              : "if (lane >= count) break;");
  }

  std::string alignmentOf(const Access& access) const {
    if (layout_.vector == 1) return "true";
    if (!isVectorized(access)) return "false";
    return layout_.shifted ? "aligned_" + access.name : "true";
  }

  // part() returns the suffix of the functions that access a vector (hd::load(), hd::loadPart()).
  // elements() returns the arguments of these functions that select the elements of the row.
  const char* part() const { return layout_.shifted ? "Part" : ""; }
  const char* elements() const { return layout_.shifted ? "first, count" : "count"; }

  // Writes the declaration of a tile that a body computes.
  void declareTile(TileId id, int32_t registers) {
    out_.line(fmt::format("{} tile{}[{}][{}];", storedType(tile(id).dtype), id, registers,
                          layout_.vector));
  }

  void declareLoadedTile(TileId id, int32_t registers, const char* name = "tile") {
    const std::string_view type = storedType(tile(id).dtype);
    if (one_lane_.contains(id)) {
      out_.line(fmt::format("hd::Lanes<1, {}> {}{}[{}];", type, name, id, registers));
    } else {
      out_.line(
          fmt::format("hd::Lanes<{}, {}> {}{}[{}];", layout_.vector, type, name, id, registers));
    }
  }

  // Writes the declaration of the variable of a tile that a statement loads. `name` is the first
  // part of its name.
  void declareLoaded(const LoadTile& load, const char* name) {
    const Access& access = frame_.access(load.tensor);
    const bool per_row = tile(load.tile).per_row;
    if (per_row && !layout_.bundled) {
      out_.line(fmt::format("{} {}{} = {{}};", storedType(access.dtype), name, load.tile));
      return;
    }
    if (access.lane == LaneStride::Zero) one_lane_.insert(load.tile);
    declareLoadedTile(load.tile, per_row ? 1 : layout_.registers, name);
  }

  // Writes the loads of a tile into the variable that declareLoaded() has declared.
  void loadInto(const LoadTile& load, const char* name) {
    if (layout_.bundled) return loadOfBundle(load, name);
    if (tile(load.tile).per_row) {
      const Access& access = frame_.access(load.tensor);
      out_.line(fmt::format("if (active) {}{} = {}[{}];", name, load.tile, access.name,
                            access.kept_offset.str()));
      return;
    }
    writeVectors({}, {}, [&] { writeLoad(load, "u", name); });
  }

  void loadOfBundle(const LoadTile& load, const char* name);

  static void write(const ExchangeTile&) {
    HEDDLE_CHECK(false, "a program of rows must not exchange tiles");
  }
  static void write(const StoreStates&) {
    HEDDLE_CHECK(false, "a program of rows must not store its states");
  }
  static void write(const StoreExchanged&) {
    HEDDLE_CHECK(false, "a program of rows must not exchange tiles");
  }

  void write(const LoadTile& load) {
    if (load.when != LoadTile::When::Row) return;  // openColumns() has written the load
    const bool along_row = frame_.access(load.tensor).lane != LaneStride::Zero;
    if (layout_.shared_bytes > 0 && along_row && !tile(load.tile).per_row) return hold(load);
    declareLoaded(load, "tile");
    loadInto(load, "tile");
  }

  void hold(const LoadTile& load);

  bool loadsPairs(const LoadTile& load) const;
  void loadBundle(const LoadTile& load, const std::function<void()>& write);

  void writeLoad(const LoadTile& load, const char* u, const char* variable = "tile") {
    const Access& access = frame_.access(load.tensor);
    const std::string name = fmt::format("{}{}[{}]", variable, load.tile, u);
    const std::string from =
        fmt::format("{} + ({})", access.name, (access.kept_offset + access.reduced_offset).str());
    switch (access.lane) {
      case LaneStride::Zero:
        out_.line(fmt::format("{}.set(0, *({}));", name, from));
        break;
      case LaneStride::One:
        out_.line(fmt::format("hd::load{}<{}{}>({}, {}, {}, {});",
                              loadsPairs(load) ? "Part" : part(), layout_.vector,
                              streamsLoad(access) ? ", true" : "", name, from, alignmentOf(access),
                              loadsPairs(load) ? "0, count" : elements()));
        break;
      case LaneStride::Any:
        out_.line(fmt::format("hd::loadStrided<{}>({}, {}, {}, count);", layout_.vector, name, from,
                              access.lane_stride.str()));
        break;
    }
  }

  LeafText leaves() const;

  std::string nextPrefix() { return fmt::format("b{}_", bodies_++); }

  void write(const MapTiles& map) { map.per_row ? writeRowMap(map) : writeElementMap(map); }

  void writeBundleMap(const MapTiles& map);

  void writeRowMap(const MapTiles& map);
  void writeElementMap(const MapTiles& map);
  void mapLanes(const MapTiles& map);

  void writeStore(int tensor, bool rounds);

  // Returns the argument `lanes` of writeLaneStates(). If rows are shifted, this is 1, because the
  // loop skips the lanes before the row and may not start at lane 0.
  int lanesInOrder() const { return layout_.shifted ? 1 : layout_.vector; }

  const Accumulator& accumulator(AccumulatorId a) const { return frame_.accumulators[a]; }

  void declareAccumulators(const ReduceTiles& reduce);

  // Writes a reduction. If it is in a loop over parts of the row and calls hd::addSome(), all loads
  // precede the first call. The reason: a branch in a call would delay the loads after it. All
  // loads also come first if rows are divided.
  void write(const ReduceTiles& reduce);

  void reduceLanes(const ReduceTiles& reduce);

  void write(const LoopOverRow& loop);

  void write(const CombineParts& combine) { combiner_.parts(combine.accumulators); }

  const TileProgram& program_;
  const KernelFrame& frame_;
  const RowLayout& layout_;
  std::set<TileId> one_lane_;    // tiles that hold the same element for all lanes
  std::set<TileId> one_vector_;  // tiles of which a thread holds one vector at a time
  std::set<TileId> held_;        // tiles in shared memory
  std::set<TileId> early_;       // tiles that loadEarly() has loaded
  int64_t held_bytes_ = 0;       // number of bytes of the tiles in `held_`
  bool is_copying_ = false;  // the text has begun copies to shared memory and not waited for them
  bool in_loop_ = false;     // inside of a LoopOverRow
  bool is_last_sweep_ = false;  // the text of the last sweep of divided rows is being written
  int bodies_ = 0;
  TextWriter out_;
  RowCombiner combiner_;
};

}  // namespace heddle::codegen
