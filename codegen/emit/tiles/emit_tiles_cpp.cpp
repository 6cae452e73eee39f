// Writes the C++ text of a tile program with rows, statement by statement. One thread computes one
// row after another.
#include <algorithm>
#include <set>

#include "codegen/emit/accumulator_text.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/libm_text.h"
#include "codegen/emit/streamed_stores.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// The smallest extent of the lane axis for which prefetches save time.
constexpr int kLeastPrefetchedRow = 64;
// A map processes an item in blocks of this many elements, and prefetches once per block.
constexpr int kBlockElements = StreamedStores::kBlockElements;

class CppTileEmitter {
 public:
  explicit CppTileEmitter(const TileProgram& program)
      : program_(program),
        frame_(program.frame),
        lanes_(program.layout.vector),
        tensor_of_(program.tiles.size(), -1) {}

  std::string emit() {
    openCppEntry(out_, frame_);
    for (const Statement& statement : program_.statements) declareArrays(statement);
    if (!program_.columns.empty()) openTile();
    const std::string begin = program_.columns.empty() ? "tile_begin" : "split";
    const std::string end = program_.columns.empty() ? "tile_end" : "(split + 1)";
    out_.line(
        fmt::format("const Index work_end = hd::smaller({} * items_per_tile, kept_items);", end));
    out_.open(
        fmt::format("for (Index kept = {} * items_per_tile; kept < work_end; ++kept) {{", begin));
    writeCoordinates(out_, frame_.kept);
    const std::vector<Statement>& statements = program_.statements;
    for (size_t i = 0; i < statements.size(); ++i) {
      // Only a map along the row and a reduction directly after it share a loop.
      const auto* map = std::get_if<MapTiles>(&statements[i]);
      const bool is_last = i + 1 == statements.size();
      const auto* reduce = is_last ? nullptr : std::get_if<ReduceTiles>(&statements[i + 1]);
      if (map != nullptr && !map->per_row && reduce != nullptr) {
        writeMap(*map, reduce);
        ++i;
        continue;
      }
      std::visit([this](const auto& one) { this->write(one); }, statements[i]);
    }
    out_.close();
    if (!program_.columns.empty()) out_.close();
    finishStreams(out_);
    out_.close();
    return libmText(bodies_) + frame_.args.structText("Args_" + frame_.entry) + out_.take();
  }

 private:
  // Opens the loop over the tiles of the grid (LaunchStage). Each of these tiles has its own sums
  // of columns in memory. The text sets each sum to the identity of its reduction.
  void openTile() {
    out_.open("for (Index split = tile_begin; split < tile_end; ++split) {");
    for (const ColumnSums& column : program_.columns) {
      const Access& access = frame_.access(column.tensor);
      const std::string& name = access.name;
      out_.line(fmt::format("for (Index i = 0; i < lane_extent; ++i) ({} + ({}))[i] = {};", name,
                            access.kept_offset.str(), identityText(column.accumulator)));
    }
  }

  const ColumnSums* columnOf(int tensor) const {
    for (const ColumnSums& column : program_.columns) {
      if (column.tensor == tensor) return &column;
    }
    return nullptr;
  }

  const Tile& tile(TileId id) const { return program_.tiles[id]; }

  // Writes the declaration of an array for each tile along the row that a map computes. Loaded
  // tiles need no array, because the text reads the tensor in memory.
  void declareArrays(const Statement& statement) {
    const auto* map = std::get_if<MapTiles>(&statement);
    if (map == nullptr || map->per_row) return;
    for (const MapTiles::Result& result : map->results) {
      out_.line(fmt::format("alignas(64) {} tile{}[{}];", storedType(tile(result.tile).dtype),
                            result.tile, program_.layout.capacity));
    }
  }

  void write(const LoadTile& load) {
    tensor_of_[load.tile] = load.tensor;
    if (!tile(load.tile).per_row) return;
    const Access& access = frame_.access(load.tensor);
    out_.line(fmt::format("const {} tile{} = {}[{}];", storedType(access.dtype), load.tile,
                          access.name, access.kept_offset.str()));
  }

  void writePointer(int tensor, std::set<int>& written) {
    if (!written.insert(tensor).second) return;
    const Access& access = frame_.access(tensor);
    out_.line(fmt::format("{}{}* const p{} = {} + ({});", access.output ? "" : "const ",
                          storedType(access.dtype), tensor, access.name,
                          (access.kept_offset + access.reduced_offset).str()));
  }

  // Writes the pointers to lane 0 of the current item, for all tensors along the row that a body
  // accesses and that are not in `written`.
  void writePointers(const Body& body, std::set<int>& written) {
    for (const Node& node : body.nodes) {
      if (node.kind != Node::Kind::Load || tile(TileId(node.index)).per_row) continue;
      const int tensor = tensor_of_[TileId(node.index)];
      if (tensor >= 0) writePointer(tensor, written);
    }
    for (const Store& store : body.stores) writePointer(store.tensor, written);
  }

  LeafText leaves() const {
    LeafText leaves;
    leaves.element = [this](int index) {
      const TileId id(index);
      if (tile(id).per_row) return fmt::format("tile{}", id);
      const int tensor = tensor_of_[id];
      return tensor >= 0 ? cppElement(frame_, tensor) : fmt::format("tile{}[at + i]", id);
    };
    leaves.result = [](AccumulatorId a) { return fmt::format("acc{}[0]", a); };
    leaves.lane = "i";
    return leaves;
  }

  std::string nextPrefix(const Body& body) {
    bodies_.push_back(&body);
    return fmt::format("b{}_", bodies_.size());
  }

  // Returns the declarations of a counter for each axis of a row. If the items are short, counters
  // are faster than divisions of each item's number by the extents.
  std::string counters() const {
    std::string text;
    for (size_t axis = 0; axis < frame_.reduced.size(); ++axis) {
      const bool is_last = axis + 1 == frame_.reduced.size();
      text += fmt::format(", {}_item = {}", frame_.reduced[axis].name, is_last ? -1 : 0);
    }
    return text;
  }

  // Writes text that counts to the next item, and the declarations of its coordinates.
  void advanceCounters() {
    for (size_t axis = frame_.reduced.size(); axis-- > 1;) {
      const Coordinate& c = frame_.reduced[axis];
      out_.open(fmt::format("if (++{0}_item == {1}) {{", c.name, c.items));
      out_.line(fmt::format("{}_item = 0;", c.name));
    }
    out_.line(fmt::format("++{}_item;", frame_.reduced[0].name));
    for (size_t axis = frame_.reduced.size(); axis-- > 1;) out_.close();
    for (const Coordinate& c : frame_.reduced) {
      out_.line(fmt::format("[[maybe_unused]] const Index {0} = {0}_item{1};", c.name,
                            c.lanes ? " * chunk" : ""));
    }
  }

  // Opens the loop over the items of the row. In the text, `at` is the index of the first element
  // of the item in the array of a tile.
  void openItems(const std::vector<const Body*>& bodies) {
    const bool counts = frame_.reduced.size() > 1;
    out_.open(fmt::format("for (Index reduced = 0{}; reduced < reduced_items; ++reduced) {{",
                          counts ? counters() : ""));
    if (counts) {
      advanceCounters();
    } else {
      writeCoordinates(out_, frame_.reduced);
    }
    out_.line(fmt::format("const Index count = hd::smaller(chunk, lane_extent - {});",
                          frame_.lane_start.str()));
    out_.line("[[maybe_unused]] const Index at = reduced * chunk;");
    std::set<int> written;
    for (const Body* body : bodies) writePointers(*body, written);
  }

  void openLanes(const char* index, const char* begin, const std::string& end) {
    // The loop has no dependences between lanes: no two lanes write the same element, and if an
    // output has the memory of an input, only the lane that writes an element reads it.
    out_.line("#pragma GCC ivdep");
    out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; ++{0}) {{", index, begin, end));
  }

  // Returns whether lanes are neighbours, and the tensor changes along a kept axis.
  static bool hasRows(const Access& access) {
    return access.lane == LaneStride::One && access.kept_offset.kind() != IndexExpr::Kind::Constant;
  }

  // Writes prefetches for the current block of a map, so that the memory is busy while the map
  // computes. The text prefetches
  // - the block of the next row, in tensors that the map reads. The next row is assumed to follow
  //   this one. If it does not, the prefetch is useless but harmless.
  // - the block of this row, in tensors that maps along the row store, if this map stores nothing
  //   and the stores are not streamed.
  // The kernel prefetches nothing if the lane axis is short. A row may then consist of many pieces
  // (the channels of a group of an NHWC image), and a prefetch would fetch far more than one piece.
  void writePrefetches(const Body& body) {
    std::set<int> tensors;
    for (const Node& node : body.nodes) {
      if (node.kind != Node::Kind::Load || tile(TileId(node.index)).per_row) continue;
      const int tensor = tensor_of_[TileId(node.index)];
      if (tensor >= 0 && hasRows(frame_.access(tensor))) tensors.insert(tensor);
    }
    for (const int tensor : tensors) {
      out_.line(fmt::format("if (lane_extent >= {}) hd::prefetch<{}>(p{} + lane_extent + start);",
                            kLeastPrefetchedRow, kBlockElements, tensor));
    }
    if (!body.stores.empty()) return;
    for (const Statement& statement : program_.statements) {
      // Only the body of a MapTiles stores elements to memory.
      const auto* map = std::get_if<MapTiles>(&statement);
      if (map == nullptr || map->per_row) continue;
      for (const Store& store : map->body.stores) {
        const Access& access = frame_.access(store.tensor);
        if (!hasRows(access)) continue;
        out_.line(
            fmt::format("if (!streams && lane_extent >= {}) "
                        "hd::prefetch<{}, 1>({} + ({}) + start);",
                        kLeastPrefetchedRow, kBlockElements, access.name,
                        (access.kept_offset + access.reduced_offset).str()));
      }
    }
  }

  void write(const MapTiles& map) { writeMap(map, nullptr); }

  // Writes a map, and the reduction after it if `reduce` is given. The reduction then reads each
  // block of the map while the block is in the cache. Each block begins with its prefetches.
  void writeMap(const MapTiles& map, const ReduceTiles* reduce) {
    for (const LoadTile& load : map.loads) write(load);
    const std::string prefix = nextPrefix(map.body);
    if (map.per_row) return writeRowMap(map, prefix);
    std::vector<const Body*> bodies = {&map.body};
    if (reduce != nullptr) {
      for (const LoadTile& load : reduce->loads) write(load);
      declareAccumulators(*reduce, "acc");
      bodies.push_back(&reduce->body);
    }
    openItems(bodies);
    if (reduce != nullptr) declareAccumulators(*reduce, "part");
    out_.open(fmt::format("for (Index start = 0; start < count; start += {}) {{", kBlockElements));
    out_.line(fmt::format("const Index end = hd::smaller(start + {}, count);", kBlockElements));
    writePrefetches(map.body);
    writeMapBlock(map, prefix);
    if (reduce != nullptr) reduceRange(*reduce, nextPrefix(reduce->body), "start", "end");
    out_.close();
    if (reduce != nullptr) addParts(*reduce);
    out_.close();
  }

  // Writes the loop of a map over the elements `start` to `end` - 1 of an item.
  void writeMapBlock(const MapTiles& map, const std::string& prefix) {
    std::vector<int> columns;
    for (const ColumnSums& column : program_.columns) columns.push_back(column.tensor);
    const StreamedStores streamed(frame_, map.body, columns);
    streamed.open(out_);
    openLanes("i", "start", "end");
    writeStates(out_, map.body, prefix);
    writeNodes(out_, map.body, frame_, leaves(), prefix);
    for (const MapTiles::Result& result : map.results) {
      out_.line(fmt::format("tile{}[at + i] = {};", result.tile,
                            storedText(map.body, result.node, tile(result.tile).dtype, prefix)));
    }
    for (const Store& store : map.body.stores) {
      if (const ColumnSums* column = columnOf(store.tensor)) {
        Accumulator acc = column->accumulator;
        acc.element = store.node;
        const std::string into = cppElement(frame_, store.tensor);
        out_.line(fmt::format("{} = {};", into,
                              combineText(acc, into, elementText(map.body, acc, prefix))));
        continue;
      }
      out_.line(
          fmt::format("{} = {};", streamed.element(store.tensor),
                      storedText(map.body, store.node, frame_.access(store.tensor).dtype, prefix)));
    }
    out_.close();
    streamed.close(out_);
  }

  void writeRowMap(const MapTiles& map, const std::string& prefix) {
    writeStates(out_, map.body, prefix);
    writeNodes(out_, map.body, frame_, leaves(), prefix);
    for (const MapTiles::Result& result : map.results) {
      out_.line(fmt::format("const {} tile{} = {};", storedType(tile(result.tile).dtype),
                            result.tile,
                            storedText(map.body, result.node, tile(result.tile).dtype, prefix)));
    }
    for (const Store& store : map.body.stores) {
      const Access& access = frame_.access(store.tensor);
      out_.line(fmt::format("{}[{}] = {};", access.name, access.kept_offset.str(),
                            storedText(map.body, store.node, access.dtype, prefix)));
    }
  }

  void declareAccumulators(const ReduceTiles& reduce, const char* name) {
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& acc = frame_.accumulators[a];
      out_.line(fmt::format("{} {}{}[{}];", valueType(acc.type), name, a, lanes_));
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {}{}[l] = {};", lanes_, name, a,
                            literalText(acc.identity, acc.type)));
    }
  }

  // Writes text that combines element `i` of the item with the accumulators of lane `l`.
  void writeElement(const ReduceTiles& reduce, const std::string& prefix) {
    writeStates(out_, reduce.body, prefix);
    writeNodes(out_, reduce.body, frame_, leaves(), prefix);
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& acc = frame_.accumulators[a];
      const std::string part = fmt::format("part{}[l]", a);
      out_.line(fmt::format("{} = {};", part,
                            combineText(acc, part, elementText(reduce.body, acc, prefix))));
    }
  }

  // Writes text that reduces each item into separate accumulators, and then combines these with the
  // accumulators of the row. kBlockItems in emit_items_cpp.cpp explains the reason.
  void write(const ReduceTiles& reduce) {
    for (const LoadTile& load : reduce.loads) write(load);
    declareAccumulators(reduce, "acc");
    openItems({&reduce.body});
    declareAccumulators(reduce, "part");
    reduceRange(reduce, nextPrefix(reduce.body), "0", "count");
    addParts(reduce);
    out_.close();
  }

  // Writes text that combines elements `begin` to `end` - 1 of the item with accumulators.
  void reduceRange(const ReduceTiles& reduce, const std::string& prefix, const char* begin,
                   const char* end) {
    out_.line(fmt::format("Index from = {};", begin));
    out_.open(fmt::format("for (; from + {0} <= {1}; from += {0}) {{", lanes_, end));
    IdVector<AccumulatorId, Accumulator> accumulators;
    for (AccumulatorId a : reduce.accumulators) {
      accumulators.push_back(frame_.accumulators[a]);
    }
    writeLanePragma(out_, accumulators, lanes_);
    openLanes("l", "0", std::to_string(lanes_));
    out_.line("const Index i = from + l;");
    writeElement(reduce, prefix);
    out_.close();
    out_.close();
    out_.open(fmt::format("for (Index l = 0; from + l < {}; ++l) {{", end));
    out_.line("const Index i = from + l;");
    writeElement(reduce, prefix);
    out_.close();
  }

  void addParts(const ReduceTiles& reduce) {
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& acc = frame_.accumulators[a];
      const std::string total = fmt::format("acc{}[l]", a);
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {} = {};", lanes_, total,
                            combineText(acc, total, fmt::format("part{}[l]", a))));
    }
  }

  void write(const CombineParts& combine) {
    for (AccumulatorId a : combine.accumulators) {
      const std::string lower = fmt::format("acc{}[l]", a);
      const std::string both =
          combineText(frame_.accumulators[a], lower, fmt::format("acc{}[l + half]", a));
      out_.line(fmt::format("for (int half = {}; half > 0; half /= 2)", lanes_ / 2));
      out_.line(fmt::format("  for (int l = 0; l < half; ++l) {} = {};", lower, both));
    }
  }

  // No family creates any of these statements for a C++ program of rows.
  template <class Other>
  static void write(const Other&) {
    HEDDLE_CHECK(false, "a C++ program of rows has a statement for items, squares or GPUs");
  }

  const TileProgram& program_;
  const KernelFrame& frame_;
  int32_t lanes_;
  IdVector<TileId, int>
      tensor_of_;  // per tile: the tensor from which it is loaded; -1: a map computes it
  std::vector<const Body*> bodies_;
  TextWriter out_;
};

}  // namespace

std::string emitCpp(const TileProgram& program) {
  if (program.items) return emitItemsCpp(program);
  if (program.square) return emitSquaresCpp(program);
  return program.layout.bundled ? emitBundlesCpp(program) : CppTileEmitter(program).emit();
}

}  // namespace heddle::codegen
