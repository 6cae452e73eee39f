// Writes the C++ text of a tile program with bundles of rows (RowLayout::bundled), statement by
// statement. One thread computes one bundle after another. A tile is an array, which stays in the
// cache. Exception: the tiles of MapTiles::loads and ReduceTiles::loads are read from the tensor.
// In the array, the elements at the same index of all rows of the bundle are neighbours.
#include <set>

#include "codegen/emit/accumulator_text.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/libm_text.h"
#include "codegen/emit/streamed_stores.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// The number of elements of a row that are summed separately. kBlockItems in
// emit_items_cpp.cpp explains the reason.
constexpr int kBlockOfRow = 64;

class CppBundleEmitter {
 public:
  explicit CppBundleEmitter(const TileProgram& program)
      : program_(program),
        frame_(program.frame),
        lanes_(program.layout.vector),
        tensor_of_(program.tiles.size(), -1) {}

  std::string emit() {
    openCppEntry(out_, frame_);
    for (const Statement& statement : program_.statements) declareArrays(statement);
    out_.line("const Index work_end = hd::smaller(tile_end * items_per_tile, kept_items);");
    out_.open("for (Index kept = tile_begin * items_per_tile; kept < work_end; ++kept) {");
    writeCoordinates(out_, frame_.kept);
    out_.line(fmt::format("const Index count = hd::smaller(chunk, lane_extent - {});",
                          frame_.lane_start.str()));
    out_.line("[[maybe_unused]] const Index start = 0, end = count;");
    for (const Statement& statement : program_.statements) {
      std::visit([this](const auto& one) { this->write(one); }, statement);
    }
    out_.close();
    finishStreams(out_);
    out_.close();
    return libmText(bodies_) + frame_.args.structText("Args_" + frame_.entry) + out_.take();
  }

 private:
  const Tile& tile(TileId id) const { return program_.tiles[id]; }

  void declareArray(TileId id) {
    const int64_t elements = tile(id).per_row ? lanes_ : program_.layout.capacity;
    out_.line(fmt::format("alignas(64) {} tile{}[{}];", storedType(tile(id).dtype), id, elements));
  }
  void declareArrays(const Statement& statement) {
    // Of the statements that this emitter accepts, only these two create tiles.
    if (const auto* load = std::get_if<LoadTile>(&statement)) declareArray(load->tile);
    if (const auto* map = std::get_if<MapTiles>(&statement)) {
      for (const MapTiles::Result& result : map->results) declareArray(result.tile);
    }
  }

  // Opens the loop over the vectors of the bundle.
  void openVectors(const char* begin = "0", const char* end = "reduced_items") {
    out_.open(fmt::format("for (Index reduced = {}; reduced < {}; ++reduced) {{", begin, end));
    writeCoordinates(out_, frame_.reduced);
    out_.line("[[maybe_unused]] const Index at = reduced * chunk;");
  }

  void openLanes() {
    // The loop has no dependences between lanes: no two lanes write the same element, and if an
    // output has the memory of an input, only the lane that writes an element reads it.
    out_.line("#pragma GCC ivdep");
    out_.open("for (Index i = 0; i < count; ++i) {");
  }

  // Writes the pointer to lane 0 of the current vector. If `per_row` is true, the tensor has one
  // element per row, and the pointer points to the element of the bundle's first row.
  void writePointer(int tensor, bool per_row) {
    const Access& access = frame_.access(tensor);
    const IndexExpr offset =
        per_row ? access.kept_offset : access.kept_offset + access.reduced_offset;
    out_.line(fmt::format("{}{}* const p{} = {} + ({});", access.output ? "" : "const ",
                          storedType(access.dtype), tensor, access.name, offset.str()));
  }

  // Writes the pointers of a statement to the tensors of `loads` and to the tensors that it stores.
  void writePointers(const std::vector<LoadTile>& loads, const Body& body, bool per_row) {
    std::set<int> tensors;
    for (const LoadTile& load : loads) tensors.insert(load.tensor);
    for (const Store& store : body.stores) tensors.insert(store.tensor);
    for (const int tensor : tensors) writePointer(tensor, per_row);
  }

  static void write(const ExchangeTile&) {
    HEDDLE_CHECK(false, "a program of bundles must not exchange tiles");
  }
  static void write(const StoreStates&) {
    HEDDLE_CHECK(false, "a program of rows must not store its states");
  }
  static void write(const StoreExchanged&) {
    HEDDLE_CHECK(false, "a program of bundles must not exchange tiles");
  }
  static void write(const LoopOverRow&) {
    HEDDLE_CHECK(false, "a loop over parts of a bundle in C++");
  }
  // Each lane has its own accumulators, so nothing is left to combine.
  static void write(const CombineParts&) {}

  // Writes text that copies the tile to its array, which has no gaps. In the tensor, the cache
  // lines of a bundle may be so far apart that they evict each other from the cache.
  void write(const LoadTile& load) {
    const bool per_row = tile(load.tile).per_row;
    per_row ? out_.open("{") : openVectors();
    writePointer(load.tensor, per_row);
    openLanes();
    out_.line(fmt::format("tile{}[{}i] = {};", load.tile, per_row ? "" : "at + ",
                          cppElement(frame_, load.tensor)));
    out_.close();
    out_.close();
  }

  LeafText leaves() const {
    LeafText leaves;
    leaves.element = [this](int index) {
      const TileId id(index);
      if (tensor_of_[id] >= 0) return cppElement(frame_, tensor_of_[id]);
      return fmt::format("tile{}[{}i]", id, tile(id).per_row ? "" : "at + ");
    };
    leaves.result = [](AccumulatorId a) { return fmt::format("acc{}[i]", a); };
    leaves.lane = "i";
    return leaves;
  }

  std::string nextPrefix(const Body& body) {
    bodies_.push_back(&body);
    return fmt::format("b{}_", bodies_.size());
  }

  void write(const MapTiles& map) {
    for (const LoadTile& load : map.loads) tensor_of_[load.tile] = load.tensor;
    const std::string prefix = nextPrefix(map.body);
    map.per_row ? out_.open("{") : openVectors();
    writePointers(map.loads, map.body, map.per_row);
    const StreamedStores streamed(frame_, map.body);
    streamed.open(out_);
    openLanes();
    writeStates(out_, map.body, prefix);
    writeNodes(out_, map.body, frame_, leaves(), prefix);
    for (const MapTiles::Result& result : map.results) {
      out_.line(fmt::format("tile{}[{}i] = {};", result.tile, map.per_row ? "" : "at + ",
                            storedText(map.body, result.node, tile(result.tile).dtype, prefix)));
    }
    for (const Store& store : map.body.stores) {
      out_.line(
          fmt::format("{} = {};", streamed.element(store.tensor),
                      storedText(map.body, store.node, frame_.access(store.tensor).dtype, prefix)));
    }
    out_.close();
    streamed.close(out_);
    out_.close();
  }

  void declareAccumulators(const ReduceTiles& reduce, const char* name) {
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& acc = frame_.accumulators[a];
      out_.line(fmt::format("{} {}{}[{}];", valueType(acc.type), name, a, lanes_));
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {}{}[l] = {};", lanes_, name, a,
                            literalText(acc.identity, acc.type)));
    }
  }

  void write(const ReduceTiles& reduce) {
    for (const LoadTile& load : reduce.loads) tensor_of_[load.tile] = load.tensor;
    const std::string prefix = nextPrefix(reduce.body);
    declareAccumulators(reduce, "acc");
    out_.open(
        fmt::format("for (Index block = 0; block < reduced_items; block += {}) {{", kBlockOfRow));
    declareAccumulators(reduce, "part");
    out_.line(fmt::format("const Index block_end = hd::smaller(block + {}, reduced_items);",
                          kBlockOfRow));
    openVectors("block", "block_end");
    writePointers(reduce.loads, reduce.body, false);
    openLanes();
    writeStates(out_, reduce.body, prefix);
    writeNodes(out_, reduce.body, frame_, leaves(), prefix);
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& acc = frame_.accumulators[a];
      const std::string part = fmt::format("part{}[i]", a);
      out_.line(fmt::format("{} = {};", part,
                            combineText(acc, part, elementText(reduce.body, acc, prefix))));
    }
    out_.close();
    out_.close();
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& acc = frame_.accumulators[a];
      const std::string total = fmt::format("acc{}[l]", a);
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {} = {};", lanes_, total,
                            combineText(acc, total, fmt::format("part{}[l]", a))));
    }
    out_.close();
  }

  const TileProgram& program_;
  const KernelFrame& frame_;
  const int32_t lanes_;
  IdVector<TileId, int> tensor_of_;  // per tile: its tensor, if MapTiles::loads or
                                     // ReduceTiles::loads names the tile; -1: the tile is an array
  std::vector<const Body*> bodies_;
  TextWriter out_;
};

}  // namespace

std::string emitBundlesCpp(const TileProgram& program) { return CppBundleEmitter(program).emit(); }

}  // namespace heddle::codegen
