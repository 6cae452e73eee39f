// Writes the C++ text of a tile program with squares (SquareLayout). One thread computes one square
// after another.
#include <algorithm>
#include <map>
#include <set>

#include "codegen/emit/kernel_text.h"
#include "codegen/emit/libm_text.h"
#include "codegen/emit/streamed_stores.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// The number of rows of squares that form a strip. A thread computes the squares of one column of a
// strip, then the squares of the next column. An exchanged tensor (ExchangeTile) is contiguous
// along the columns, so the squares of a column lie in the same memory pages. Without strips, a
// thread would spend most of its time on TLB misses if a column of the tensor is longer than a
// page.
constexpr int kStripRows = 8;

class CppSquareEmitter {
 public:
  explicit CppSquareEmitter(const TileProgram& program)
      : program_(program),
        frame_(program.frame),
        square_(*program.square),
        row_(fmt::format("k{}", frame_.kept.size())),
        column_(fmt::format("k{}", frame_.kept.size() + 1)) {}

  std::string emit() {
    openCppEntry(out_, frame_);
    out_.line(fmt::format("const Index rows = ({} + {}) / {};", square_.row_extent.str(),
                          kSquareEdge - 1, kSquareEdge));
    out_.line(fmt::format("const Index columns = (lane_extent + {}) / {};", kSquareEdge - 1,
                          kSquareEdge));
    out_.line("const Index work_end = hd::smaller(tile_end * items_per_tile, squares);");
    for (const Statement& statement : program_.statements) {
      // Exchanged tiles are arrays. The text of a map reads all other tensors directly.
      if (const auto* load = std::get_if<ExchangeTile>(&statement)) declareArray(load->tile);
      if (const auto* store = std::get_if<StoreExchanged>(&statement)) declareArray(store->tile);
    }
    out_.open("for (Index work = tile_begin * items_per_tile; work < work_end; ++work) {");
    writeSquareIndex();
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
    out_.line(fmt::format("alignas(64) {} tile{}[{}];", storedType(tile(id).dtype), id,
                          kSquareEdge * kSquareEdge));
  }

  // Writes the indices of the first element of the square, and how many rows and columns of the
  // square are inside of the tensors.
  void writeSquareIndex() {
    out_.line("const Index in_matrix = work % (rows * columns);");
    out_.line(fmt::format("const Index strip = in_matrix / (columns * {0}) * {0};", kStripRows));
    out_.line(fmt::format("const Index height = hd::smaller({}, rows - strip);", kStripRows));
    out_.line("const Index in_strip = in_matrix - strip * columns;");
    out_.line(fmt::format("const Index {} = in_strip / height * {};", column_, kSquareEdge));
    out_.line(
        fmt::format("const Index first_row = (strip + in_strip % height) * {};", kSquareEdge));
    out_.line("[[maybe_unused]] const Index other = work / (rows * columns);");
    out_.line(fmt::format("const Index count = hd::smaller({}, lane_extent - {});", kSquareEdge,
                          column_));
    out_.line(fmt::format("const Index row_count = hd::smaller({}, {} - first_row);", kSquareEdge,
                          square_.row_extent.str()));
    writeCoordinates(out_, frame_.kept);
  }

  void write(const LoadTile& load) { tensor_of_[load.tile] = load.tensor; }

  void write(const ExchangeTile& exchange) {
    const Access& access = frame_.access(exchange.tensor);
    out_.open("{");
    out_.line(fmt::format("const Index {} = first_row;", row_));
    out_.line(fmt::format("hd::transpose<{}>(tile{}, {} + ({}), {}, row_count, count);",
                          kSquareEdge, exchange.tile, access.name, access.kept_offset.str(),
                          access.lane_stride.str()));
    out_.close();
  }

  void write(const StoreExchanged& store) {
    const Access& access = frame_.access(store.tensor);
    out_.open("{");
    out_.line(fmt::format("const Index {} = first_row;", row_));
    out_.line(fmt::format("hd::transposeTo<{}>({} + ({}), {}, tile{}, row_count, count);",
                          kSquareEdge, access.name, access.kept_offset.str(),
                          access.lane_stride.str(), store.tile));
    out_.close();
  }

  // Writes the pointers to the first elements of the square's current row, for all tensors that a
  // body accesses in memory. Exchanged tiles are arrays and need no pointer.
  void writePointers(const Body& body) {
    std::set<int> tensors;
    for (const Node& node : body.nodes) {
      if (node.kind != Node::Kind::Load) continue;
      const auto found = tensor_of_.find(TileId(node.index));
      if (found != tensor_of_.end()) tensors.insert(found->second);
    }
    for (const Store& store : body.stores) tensors.insert(store.tensor);
    for (const int tensor : tensors) {
      const Access& access = frame_.access(tensor);
      out_.line(fmt::format("{}{}* const p{} = {} + ({});", access.output ? "" : "const ",
                            storedType(access.dtype), tensor, access.name,
                            access.kept_offset.str()));
    }
  }

  void write(const MapTiles& map) {
    for (const LoadTile& load : map.loads) write(load);
    bodies_.push_back(&map.body);
    LeafText leaves;
    leaves.element = [this](int index) {
      const auto found = tensor_of_.find(TileId(index));
      return found == tensor_of_.end() ? fmt::format("tile{}[at + i]", index)
                                       : cppElement(frame_, found->second);
    };
    leaves.lane = "i";
    out_.open(
        fmt::format("for (Index {0} = first_row; {0} < first_row + row_count; ++{0}) {{", row_));
    out_.line(
        fmt::format("[[maybe_unused]] const Index at = ({} - first_row) * {};", row_, kSquareEdge));
    writePointers(map.body);
    const StreamedStores streamed(frame_, map.body);
    out_.line("constexpr Index start = 0;");
    out_.line("const Index end = count;");
    streamed.open(out_);
    // The loop has no dependences between lanes: no two lanes write the same element, and if an
    // output has the memory of an input, only the lane that writes an element reads it.
    out_.line("#pragma GCC ivdep");
    out_.open("for (Index i = 0; i < count; ++i) {");
    writeStates(out_, map.body, "b");
    writeNodes(out_, map.body, frame_, leaves, "b");
    for (const MapTiles::Result& result : map.results) {
      out_.line(fmt::format("tile{}[at + i] = {};", result.tile,
                            storedText(map.body, result.node, tile(result.tile).dtype, "b")));
    }
    for (const Store& store : map.body.stores) {
      out_.line(
          fmt::format("{} = {};", streamed.element(store.tensor),
                      storedText(map.body, store.node, frame_.access(store.tensor).dtype, "b")));
    }
    out_.close();
    streamed.close(out_);
    out_.close();
  }

  template <class Other>
  static void write(const Other&) {
    HEDDLE_CHECK(false, "a program of squares must not loop over a row");
  }

  const TileProgram& program_;
  const KernelFrame& frame_;
  const SquareLayout& square_;
  const std::string row_;            // name of the coordinate of the current row
  const std::string column_;         // name of the coordinate of the square's first column
  std::map<TileId, int> tensor_of_;  // per loaded tile: the tensor from which the map reads
  std::vector<const Body*> bodies_;
  TextWriter out_;
};

}  // namespace

std::string emitSquaresCpp(const TileProgram& program) { return CppSquareEmitter(program).emit(); }

}  // namespace heddle::codegen
