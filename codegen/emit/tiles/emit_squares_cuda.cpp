// Writes the CUDA text of a tile program with squares (SquareLayout), statement by statement.
#include <algorithm>
#include <set>
#include <utility>

#include "codegen/emit/kernel_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

class SquareEmitter {
 public:
  explicit SquareEmitter(const TileProgram& program)
      : program_(program), frame_(program.frame), square_(*program.square) {}

  std::string emit() {
    const std::string args = "Args_" + frame_.entry;
    const std::string text = frame_.args.structText(args);
    openCudaEntry(out_, frame_.entry, std::to_string(kSquareThreads));
    out_.line(fmt::format("typedef {} Index;", frame_.wide_index ? "long long" : "int"));
    writeArguments(out_, frame_);
    writeSquareIndex();
    for (const Statement& statement : program_.statements) {
      std::visit([this](const auto& one) { this->write(one); }, statement);
    }
    out_.close();
    return text + out_.take();
  }

 private:
  const Tile& tile(TileId id) const { return program_.tiles[id]; }
  std::string_view type(TileId id) const { return storedType(tile(id).dtype); }
  // Returns the number of vectors that a thread holds of each tile.
  int vectors() const { return square_.edge * square_.edge / kSquareThreads / square_.vector; }
  // Returns the expression of the index of the word in shared memory that holds element `element`
  // of line `line` of a square. A line has one unused word at its end, to avoid bank conflicts.
  std::string wordAt(const std::string& line, const std::string& element) const {
    return fmt::format("({}) * {} + {}", line, square_.edge + 1, element);
  }
  std::string columnName() const { return fmt::format("k{}", frame_.kept.size() + 1); }
  std::string rowName() const { return fmt::format("k{}", frame_.kept.size()); }

  // Writes the variables that say which square this block computes. Without bands
  // (SquareLayout::banded), neighbouring blocks compute squares that are neighbours along the
  // innermost axis.
  void writeSquareIndex() {
    const int edge = square_.edge;
    out_.line(fmt::format("const Index columns = (lane_extent + {}) / {};", edge - 1, edge));
    out_.line(fmt::format("const Index rows = ({} + {}) / {};", square_.row_extent.str(), edge - 1,
                          edge));
    out_.line("const Index block = (Index)hd::block();");
    if (square_.banded) {
      out_.line("const hd::SquareIndex<Index> square(block, columns, rows);");
      out_.line(fmt::format("const Index first_column = square.column * {};", edge));
      out_.line(fmt::format("const Index first_row = square.row * {};", edge));
    } else {
      out_.line(fmt::format("const Index first_column = block % columns * {};", edge));
      out_.line(fmt::format("const Index first_row = block / columns % rows * {};", edge));
    }
    out_.line("[[maybe_unused]] const Index other = block / columns / rows;");
    writeCoordinates(out_, frame_.kept);
  }

  // Opens the loop over the vectors `u` of this thread. Vectors lie along the axis `along`;
  // `across` is the other axis of the square. The code inside runs for vectors that begin inside of
  // the tensors.
  void openVectors(const std::string& along, const std::string& across) {
    const bool by_columns = along == columnName();
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int u = 0; u < {}; ++u) {{", vectors()));
    out_.line(fmt::format("const int number = u * {} + hd::thread();", kSquareThreads));
    out_.line(fmt::format("const int along = hd::alongOf<{}, {}>(number);", square_.vector,
                          square_.edge));
    out_.line(fmt::format("const int across = hd::acrossOf<{}, {}>(number);", square_.vector,
                          square_.edge));
    out_.line(
        fmt::format("const Index {} = first_{} + along;", along, by_columns ? "column" : "row"));
    out_.line(
        fmt::format("const Index {} = first_{} + across;", across, by_columns ? "row" : "column"));
    const std::string extent = square_.row_extent.str();
    out_.open(square_.full ? "{"
                           : fmt::format("if ({} < lane_extent && {} < {}) {{", columnName(),
                                         rowName(), extent));
    const std::string rest = fmt::format("(int)hd::smaller<Index>({}, {} - {})", square_.vector,
                                         by_columns ? "lane_extent" : extent, along);
    out_.line(fmt::format("[[maybe_unused]] const int count = {};",
                          square_.exact ? std::to_string(square_.vector) : rest));
  }

  // Opens the loop over the elements of a vector that are inside of the tensors.
  void openLanes() {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int lane = 0; lane < {}; ++lane) {{", square_.vector));
    if (!square_.exact) out_.line("if (lane >= count) break;");
  }

  void closeVectors() {
    out_.close();
    out_.close();
  }

  void write(const ExchangeTile& exchange) {
    const Access& access = frame_.access(exchange.tensor);
    out_.line(fmt::format("hd::Lanes<{}, {}> from{}[{}];", square_.vector, type(exchange.tile),
                          exchange.tile, vectors()));
    openVectors(rowName(), columnName());
    out_.line(fmt::format("hd::load<{}>(from{}[u], {} + ({}), {}, count);", square_.vector,
                          exchange.tile, access.name, access.kept_offset.str(),
                          exchange.aligned || square_.vector == 1 ? "true" : "false"));
    closeVectors();
    exchanged_.push_back(exchange);
  }

  void declareWords(TileId id) {
    const std::string word = fmt::format("hd::Exchange<{}>::Word", type(id));
    out_.line(fmt::format("__shared__ hd::SharedBytes<{} * (int)sizeof({})> square{};",
                          square_.edge * (square_.edge + 1), word, id));
    out_.line(fmt::format("const hd::SharedArray<{0}> words{1}(square{1});", word, id));
  }

  // Writes text that stores the exchanged tiles in shared memory. The loads of all these tiles
  // precede this text, so that they are in flight together.
  void finishExchanges() {
    if (exchanged_.empty()) return;
    for (const ExchangeTile& exchange : exchanged_) declareWords(exchange.tile);
    openVectors(rowName(), columnName());
    for (const ExchangeTile& exchange : exchanged_) {
      openLanes();
      out_.line(fmt::format("words{0}[{2}] = hd::Exchange<{1}>::word(from{0}[u][lane]);",
                            exchange.tile, type(exchange.tile), wordAt("along + lane", "across")));
      out_.close();
    }
    closeVectors();
    out_.line("hd::barrier();");
  }

  void declareTile(TileId id, int count, LaneStride lane) {
    if (lane == LaneStride::Zero) {
      one_lane_.insert(id);
      out_.line(fmt::format("{} tile{}[{}][1];", type(id), id, count));
    } else {
      out_.line(fmt::format("hd::Lanes<{}, {}> tile{}[{}];", square_.vector, type(id), id, count));
    }
  }

  const char* alignmentOf(const Access& access) const {
    return square_.vector == 1 || access.aligned_items ? "true" : "false";
  }

  void writeLoad(const LoadTile& load, const char* u) {
    const Access& access = frame_.access(load.tensor);
    const std::string to = fmt::format("tile{}[{}]", load.tile, u);
    const std::string from = fmt::format("{} + ({})", access.name, access.kept_offset.str());
    switch (access.lane) {
      case LaneStride::Zero:
        out_.line(fmt::format("{}[0] = *({});", to, from));
        break;
      case LaneStride::One:
        out_.line(fmt::format("hd::load<{}>({}, {}, {}, count);", square_.vector, to, from,
                              alignmentOf(access)));
        break;
      case LaneStride::Any:
        out_.line(fmt::format("hd::loadStrided<{}>({}, {}, {}, count);", square_.vector, to, from,
                              access.lane_stride.str()));
        break;
    }
  }

  void write(const LoadTile& load) {
    declareTile(load.tile, vectors(), frame_.access(load.tensor).lane);
    openVectors(columnName(), rowName());
    writeLoad(load, "u");
    closeVectors();
  }

  LeafText leaves(const MapTiles& map) const {
    LeafText leaves;
    leaves.element = [this, &map](int index) {
      const TileId id(index);
      for (const ExchangeTile& exchange : exchanged_) {
        if (exchange.tile != id) continue;
        return fmt::format("hd::Exchange<{}>::value(words{}[{}])", type(id), id,
                           wordAt("across", "along + lane"));
      }
      const bool own = std::any_of(map.loads.begin(), map.loads.end(),
                                   [&](const LoadTile& load) { return load.tile == id; });
      return fmt::format("tile{}[{}][{}]", id, own ? "0" : "u",
                         one_lane_.contains(id) ? "0" : "lane");
    };
    leaves.lane = "lane";
    leaves.rounds_at_stores = true;
    return leaves;
  }

  // Finishes the exchanges first, because a barrier must precede the reads of exchanged tiles. The
  // text collects the results of a vector's lanes in arrays `out`, so that one instruction can
  // store a vector.
  void write(const MapTiles& map) {
    finishExchanges();
    for (const MapTiles::Result& result : map.results) declareWords(result.tile);
    openVectors(columnName(), rowName());
    for (const LoadTile& load : map.loads) {
      declareTile(load.tile, 1, frame_.access(load.tensor).lane);
      writeLoad(load, "0");
    }
    for (const Store& store : map.body.stores) {
      const bool rounds = roundsWhenStored(map.body, store, frame_);
      const DType dtype = frame_.access(store.tensor).dtype;
      out_.line(fmt::format("{} out{}[{}];", rounds ? "float" : storedType(dtype), store.tensor,
                            square_.vector));
    }
    writeLaneStates(out_, map.body, "b", frame_, leaves(map), square_.vector);
    openLanes();
    writeNodes(out_, map.body, frame_, leaves(map), "b");
    for (const MapTiles::Result& result : map.results) {
      out_.line(fmt::format("words{}[{}] = hd::Exchange<{}>::word({});", result.tile,
                            wordAt("across", "along + lane"), type(result.tile),
                            storedText(map.body, result.node, tile(result.tile).dtype, "b")));
    }
    for (const Store& store : map.body.stores) {
      const DType dtype = frame_.access(store.tensor).dtype;
      out_.line(fmt::format("out{}[lane] = {};", store.tensor,
                            roundsWhenStored(map.body, store, frame_)
                                ? exactText(store, "b")
                                : storedText(map.body, store.node, dtype, "b")));
    }
    out_.close();
    for (const Store& store : map.body.stores) {
      const Access& access = frame_.access(store.tensor);
      out_.line(fmt::format("hd::store{}<{}>({} + ({}), out{}, {}, count);",
                            roundsWhenStored(map.body, store, frame_) ? "Rounded" : "",
                            square_.vector, access.name, access.kept_offset.str(), store.tensor,
                            alignmentOf(access)));
    }
    closeVectors();
  }

  // A barrier must precede the reads of the words that the map has written. All StoreExchanged
  // statements follow the map, so one barrier suffices.
  void write(const StoreExchanged& store) {
    const Access& access = frame_.access(store.tensor);
    if (!std::exchange(has_waited_, true)) out_.line("hd::barrier();");
    openVectors(rowName(), columnName());
    out_.line(fmt::format("{} out{}[{}];", type(store.tile), store.tensor, square_.vector));
    openLanes();
    out_.line(fmt::format("out{}[lane] = hd::Exchange<{}>::stored(words{}[{}]);", store.tensor,
                          type(store.tile), store.tile, wordAt("along + lane", "across")));
    out_.close();
    out_.line(fmt::format("hd::store<{}>({} + ({}), out{}, {}, count);", square_.vector,
                          access.name, access.kept_offset.str(), store.tensor,
                          store.aligned || square_.vector == 1 ? "true" : "false"));
    closeVectors();
  }

  static void write(const ReduceTiles&) {
    HEDDLE_CHECK(false, "a program of squares must not reduce");
  }
  static void write(const CombineParts&) {
    HEDDLE_CHECK(false, "a program of squares must not reduce");
  }
  static void write(const StoreStates&) {
    HEDDLE_CHECK(false, "a program of squares must not reduce");
  }
  static void write(const LoopOverRow&) {
    HEDDLE_CHECK(false, "a program of squares must not loop over a row");
  }

  const TileProgram& program_;
  const KernelFrame& frame_;
  const SquareLayout& square_;
  std::set<TileId> one_lane_;  // tiles that hold the same element for all lanes
  std::vector<ExchangeTile> exchanged_;
  bool has_waited_ = false;  // true: the text contains the barrier after the map
  TextWriter out_;
};

}  // namespace

std::string emitSquaresCuda(const TileProgram& program) { return SquareEmitter(program).emit(); }

}  // namespace heddle::codegen
