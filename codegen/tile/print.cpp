#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/tile/program.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Returns a schedule in words. The axes of the space have the names of their coordinates.
std::string describe(const Schedule& s, const KernelFrame& frame) {
  const size_t kept = frame.kept.size();
  static constexpr const char* kNames[] = {"pointwise", "inner reduction", "outer reduction"};
  std::string text = fmt::format("{} over", kNames[static_cast<size_t>(s.kind)]);
  for (size_t i = 0; i < frame.extents.size(); ++i) {
    const bool is_kept = i < kept;
    text += fmt::format(" {}{}={}", is_kept ? "k" : "r", is_kept ? i : i - kept, frame.extents[i]);
  }
  text += fmt::format("; {} lanes", s.lanes);
  if (s.target == Target::Cuda) {
    text += fmt::format("{}, {} items in flight, blocks of {} threads",
                        s.exact ? "" : " with a tail", s.unroll, s.block);
    if (s.kind != ScheduleKind::Pointwise) {
      text += fmt::format(", {} threads per reduction{}", s.reduce_threads,
                          s.shifted ? ", shifted to aligned addresses" : "");
    }
  } else {
    text += fmt::format(", items of {} elements, {} items per tile", s.chunk, s.items_per_tile);
  }
  if (s.streams) text += "; lines of elements that are loaded once leave the cache first";
  if (s.splits > 1) text += fmt::format("; reduced range in {} parts", s.splits);
  return text;
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const TileProgram& program) : program_(program) {}

  std::string print() {
    std::string text = head();
    for (const Statement& statement : program_.statements) {
      std::visit([&](const auto& one) { line(text, "  ", one); }, statement);
    }
    return text;
  }

 private:
  std::string head() const {
    const KernelFrame& frame = program_.frame;
    if (program_.items) return describe(*program_.items, frame);
    if (program_.square) {
      const SquareLayout& square = *program_.square;
      const std::string text =
          fmt::format("squares: {} x {} x {} of {} x {} elements", square.others, square.rows,
                      square.columns, square.edge, square.edge);
      if (program_.target == Target::Cpp) return text + "; one thread per square";
      return text + fmt::format(", {} elements per vector{}", square.vector,
                                square.banded ? ", in bands of columns" : "");
    }
    const RowLayout& layout = program_.layout;
    std::string text =
        fmt::format("rows: {} of {} elements", frame.kept_items.hi(), frame.reduced_count.hi());
    if (layout.bundled) {
      text = fmt::format("bundles of rows: {} of {} rows of {} elements", frame.kept_items.hi(),
                         frame.chunk.hi(), frame.reduced_count.hi());
    }
    const char* one = layout.bundled ? "bundle" : "row";
    if (program_.target == Target::Cpp) return text + fmt::format("; one thread per {}", one);
    if (layout.divided.parts > 0) {
      text += fmt::format("; {} blocks share the rows, in {} parts per row", layout.blocks,
                          layout.divided.parts);
      one = "part";
    } else {
      const std::string rows =
          layout.bundled ? fmt::format("{} bundles", layout.rows) : std::string("row");
      text += layout.cluster > 1
                  ? fmt::format("; clusters of {} blocks per {}", layout.cluster, rows)
              : layout.row_blocks > 1 ? fmt::format("; {} blocks per row", layout.row_blocks)
                                      : fmt::format("; {} per block", layout.rows);
    }
    return text + fmt::format(", {} threads per {}, {} vectors of {} elements per thread{}{}",
                              layout.threads, one, layout.registers, layout.vector,
                              layout.shared_bytes > 0 ? " in shared memory" : "",
                              layout.shifted ? ", which begin at aligned addresses"
                              : layout.full  ? ""
                              : layout.exact ? ", with a tail of vectors"
                                             : ", with a tail of elements");
  }

  const std::string& name(TileId tile) const { return program_.tiles[tile].name; }

  // Returns the name of an accumulator. If its state belongs to two joint reductions
  // (codegen/plan/joint.h), also returns the name of the second one.
  std::string names(AccumulatorId a) const {
    const IdVector<AccumulatorId, Accumulator>& all = program_.frame.accumulators;
    for (AccumulatorId other : all.ids()) {
      if (all[other].first == a) return fmt::format("acc{} with acc{}", a, other);
    }
    return fmt::format("acc{}", a);
  }

  std::string operands(const Body& body, const std::vector<LoadTile>& loads) const {
    std::vector<std::string> names;
    for (const Node& node : body.nodes) {
      if (node.kind == Node::Kind::Load) names.push_back(name(TileId(node.index)));
      if (node.kind == Node::Kind::Result) names.push_back(fmt::format("acc{}", node.index));
    }
    const auto ops = std::count_if(body.nodes.begin(), body.nodes.end(),
                                   [](const Node& node) { return node.kind == Node::Kind::Apply; });
    std::string text = fmt::format("{} op{}", ops, ops == 1 ? "" : "s");
    if (!names.empty()) text += fmt::format(" on {}", fmt::join(names, ", "));
    for (const LoadTile& load : loads) {
      text +=
          fmt::format(", with {} = {}", name(load.tile), program_.frame.access(load.tensor).name);
    }
    return text;
  }

  void line(std::string& text, const std::string& indent, const LoadTile& load) const {
    const char* form = program_.tiles[load.tile].per_row ? ", one per row" : "";
    const char* when = load.when == LoadTile::When::Once    ? ", before the rows"
                       : load.when == LoadTile::When::Ahead ? ", one row ahead"
                                                            : "";
    text += fmt::format("\n{}{} = load {}{}{}", indent, name(load.tile),
                        program_.frame.access(load.tensor).name, form, when);
  }

  void line(std::string& text, const std::string& indent, const ExchangeTile& exchange) const {
    const bool cuda = program_.target == Target::Cuda;
    text += fmt::format("\n{}{} = load {}{}", indent, name(exchange.tile),
                        program_.frame.access(exchange.tensor).name,
                        cuda ? " through shared memory" : " and transpose it");
  }

  void line(std::string& text, const std::string& indent, const StoreExchanged& store) const {
    const bool cuda = program_.target == Target::Cuda;
    text += fmt::format("\n{}store {} = {}{}", indent, program_.frame.access(store.tensor).name,
                        name(store.tile), cuda ? " through shared memory" : ", transposed");
  }

  void line(std::string& text, const std::string& indent, const MapTiles& map) const {
    std::vector<std::string> results;
    for (const MapTiles::Result& result : map.results) results.push_back(name(result.tile));
    for (const Store& store : map.body.stores) {
      const auto& columns = program_.columns;
      const bool adds = std::any_of(columns.begin(), columns.end(), [&](const ColumnSums& column) {
        return column.tensor == store.tensor;
      });
      results.push_back((adds ? "add to columns " : "store ") +
                        program_.frame.access(store.tensor).name);
    }
    text += fmt::format("\n{}{} = map {}{}", indent, fmt::join(results, ", "),
                        operands(map.body, map.loads), map.per_row ? ", once per row" : "");
  }

  void line(std::string& text, const std::string& indent, const ReduceTiles& reduce) const {
    std::vector<std::string> results;
    for (AccumulatorId a : reduce.accumulators) results.push_back(names(a));
    for (const Store& store : reduce.body.stores) {
      results.push_back("store " + program_.frame.access(store.tensor).name);
    }
    text += fmt::format("\n{}{} = reduce {}", indent, fmt::join(results, ", "),
                        operands(reduce.body, reduce.loads));
  }

  void line(std::string& text, const std::string& indent, const CombineParts& combine) const {
    std::vector<std::string> results;
    for (AccumulatorId a : combine.accumulators) results.push_back(names(a));
    text += fmt::format("\n{}combine {}", indent, fmt::join(results, ", "));
  }

  void line(std::string& text, const std::string& indent, const StoreStates& store) const {
    std::vector<std::string> names;
    for (int tensor : store.tensors) names.push_back(program_.frame.access(tensor).name);
    text += fmt::format("\n{}store {} = the states", indent, fmt::join(names, ", "));
  }

  void line(std::string& text, const std::string& indent, const LoopOverRow& loop) const {
    text += fmt::format("\n{}for each part of the row:", indent);
    for (const Statement& statement : loop.statements) {
      std::visit([&](const auto& one) { line(text, indent + "  ", one); }, statement);
    }
  }

  const TileProgram& program_;
};

}  // namespace

std::string printProgram(const TileProgram& program) { return ProgramPrinter(program).print(); }

}  // namespace heddle::codegen
