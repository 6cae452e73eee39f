#include <algorithm>
#include <map>

#include "codegen/tile/program.h"
#include "ir/base/check.h"
#include "ir/base/overloaded.h"

namespace heddle::codegen {
namespace {

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const TileProgram& program)
      : program_(program),
        made_(program.tiles.size(), false),
        combined_(program.frame.accumulators.size(), false),
        reduced_(program.frame.accumulators.size(), false) {}

  void check(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      std::visit([&](const auto& one) { check(one); }, statement);
    }
  }

 private:
  const Tile& tile(TileId id) const { return program_.tiles.at(id); }

  void make(TileId id) {
    HEDDLE_CHECK(!made_.at(id), "tile {} is computed twice", tile(id).name);
    made_[id] = true;
  }

  void checkBody(const Body& body, bool per_row) const {
    for (const Node& node : body.nodes) {
      if (node.kind == Node::Kind::Load) {
        const TileId id(node.index);
        HEDDLE_CHECK(made_.at(id), "tile {} is read before it is computed", tile(id).name);
        HEDDLE_CHECK(!per_row || tile(id).per_row, "a body that runs once per row reads tile {}",
                     tile(id).name);
      } else if (node.kind == Node::Kind::Result) {
        const AccumulatorId id(node.index);
        const Accumulator& accumulator = program_.frame.accumulators.at(id);
        HEDDLE_CHECK(combined_.at(accumulator.hasState() ? id : accumulator.first),
                     "accumulator {} is read before it is combined", id);
      }
    }
  }

  void check(const LoadTile& load) {
    HEDDLE_CHECK(!program_.frame.accesses.at(load.tensor).output, "a statement loads an output");
    HEDDLE_CHECK(load.when == LoadTile::When::Row ||
                     (!program_.columns.empty() && !in_loop_ && program_.target == Target::Cuda),
                 "tile {} is loaded before its row in a program that does not loop over rows",
                 tile(load.tile).name);
    make(load.tile);
  }

  void check(const ExchangeTile& exchange) {
    HEDDLE_CHECK(program_.square, "ExchangeTile in a program without squares");
    check(LoadTile{exchange.tensor, exchange.tile});
  }

  void check(const StoreExchanged& store) const {
    HEDDLE_CHECK(program_.square, "StoreExchanged in a program without squares");
    HEDDLE_CHECK(program_.frame.accesses.at(store.tensor).output, "a statement stores an input");
    HEDDLE_CHECK(made_.at(store.tile), "tile {} is stored before it is computed",
                 tile(store.tile).name);
  }

  // Checks the loads of one statement. After the statement, forget() makes every read of the loaded
  // tiles an error.
  void checkLoads(const std::vector<LoadTile>& loads) {
    for (const LoadTile& load : loads) check(load);
  }
  void forget(const std::vector<LoadTile>& loads) {
    for (const LoadTile& load : loads) made_[load.tile] = false;
  }

  void check(const MapTiles& map) {
    checkLoads(map.loads);
    checkBody(map.body, map.per_row);
    forget(map.loads);
    for (const MapTiles::Result& result : map.results) {
      HEDDLE_CHECK(tile(result.tile).per_row == map.per_row, "tile {} has another shape",
                   tile(result.tile).name);
      make(result.tile);
    }
  }

  void check(const ReduceTiles& reduce) {
    HEDDLE_CHECK(!program_.square, "ReduceTiles in a program of squares");
    HEDDLE_CHECK(program_.items || reduce.body.stores.empty(), "a reduction of rows has stores");
    checkLoads(reduce.loads);
    checkBody(reduce.body, false);
    forget(reduce.loads);
    for (AccumulatorId a : reduce.accumulators) {
      const Accumulator& accumulator = program_.frame.accumulators.at(a);
      HEDDLE_CHECK(accumulator.hasState(), "accumulator {} has no state", a);
      HEDDLE_CHECK(accumulator.joint == JointKind::None || !program_.layout.bundled,
                   "joint reductions of a bundle");
      reduced_.at(a) = true;
    }
  }

  void check(const CombineParts& combine) {
    HEDDLE_CHECK(!in_loop_, "accumulators are combined inside a loop");
    for (AccumulatorId a : combine.accumulators) {
      HEDDLE_CHECK(reduced_.at(a), "accumulator {} has no elements", a);
      combined_[a] = true;
    }
  }

  void check(const StoreStates& store) const {
    HEDDLE_CHECK(program_.items, "StoreStates in a program without items");
    size_t members = 0;
    for (AccumulatorId a : withState(program_.frame.accumulators)) {
      HEDDLE_CHECK(combined_.at(a), "accumulator {} is stored before it is combined", a);
      members += memberTypes(program_.frame.accumulators[a]).size();
    }
    HEDDLE_CHECK(members == store.tensors.size(), "{} tensors for {} members of states",
                 store.tensors.size(), members);
    for (int tensor : store.tensors) {
      HEDDLE_CHECK(program_.frame.accesses.at(tensor).output, "a statement stores an input");
    }
  }

  void check(const LoopOverRow& loop) {
    HEDDLE_CHECK(!in_loop_, "a loop inside a loop");
    HEDDLE_CHECK(!program_.layout.bundled, "a loop over parts of a bundle");
    const IdVector<TileId, bool> outside = made_;
    in_loop_ = true;
    check(loop.statements);
    in_loop_ = false;
    for (TileId id : made_.ids()) made_[id] = outside[id] || (made_[id] && tile(id).per_row);
  }

  const TileProgram& program_;
  IdVector<TileId, bool> made_;
  IdVector<AccumulatorId, bool> combined_;
  IdVector<AccumulatorId, bool> reduced_;
  bool in_loop_ = false;
};

// Records between which statements each tile is in use.
class Uses {
 public:
  explicit Uses(const std::vector<Statement>& statements) { walk(statements); }

  int64_t mostBytes(const IdVector<TileId, Tile>& tiles) const {
    int64_t most = 0;
    for (int at = 0; at < count_; ++at) {
      int64_t bytes = 0;
      for (const auto& [tile, range] : ranges_) {
        const Tile& one = tiles[tile];
        if (one.per_row || at < range.first || at > range.second) continue;
        bytes += sizeOf(one.dtype);
      }
      most = std::max(most, bytes);
    }
    return most;
  }

 private:
  void use(TileId tile) {
    const auto [found, fresh] = ranges_.try_emplace(tile, count_, count_);
    if (!fresh) found->second.second = count_;
  }

  // Does not count tiles of `loads`, because a thread holds only one vector of such a tile.
  void use(const Body& body, const std::vector<LoadTile>& loads) {
    for (const Node& node : body.nodes) {
      const bool own = std::any_of(loads.begin(), loads.end(), [&](const LoadTile& load) {
        return load.tile == TileId(node.index);
      });
      if (node.kind == Node::Kind::Load && !own) use(TileId(node.index));
    }
  }

  void walk(const std::vector<Statement>& statements) {
    const Overloaded count{
        [&](const LoadTile& load) {
          use(load.tile);
          ++count_;
        },
        // liveBytes() counts only programs of rows, which exchange no tiles.
        [&](const ExchangeTile&) { ++count_; },
        [&](const StoreExchanged&) { ++count_; },
        [&](const MapTiles& map) {
          use(map.body, map.loads);
          // A result may take the registers of operands that no later statement reads.
          ++count_;
          for (const MapTiles::Result& result : map.results) use(result.tile);
          ++count_;
        },
        [&](const ReduceTiles& reduce) {
          use(reduce.body, reduce.loads);
          ++count_;
        },
        // These statements name accumulators, not tiles.
        [&](const CombineParts&) { ++count_; },
        [&](const StoreStates&) { ++count_; },
        [&](const LoopOverRow& loop) { walk(loop.statements); },
    };
    for (const Statement& statement : statements) std::visit(count, statement);
  }

  std::map<TileId, std::pair<int, int>> ranges_;
  int count_ = 0;
};

// Checks a program whose rows are divided. A work item repeats the statements of earlier sweeps
// that run once per row, but not the loops of these sweeps. Tiles along the row therefore exist
// only in the loop that computes them.
void verifyDivided(const TileProgram& program) {
  const RowLayout& layout = program.layout;
  HEDDLE_CHECK(program.target == Target::Cuda && program.columns.empty() && !layout.bundled &&
                   layout.rows == 1 && layout.threads > 32 && layout.shared_bytes == 0 &&
                   layout.blocks > 0,
               "the layout does not suit divided rows");
  int32_t sweeps = 1;
  int32_t stores = 0;
  const Overloaded count{
      [&](const LoadTile& load) {
        HEDDLE_CHECK(program.tiles[load.tile].per_row, "a tile holds a complete row");
      },
      [](const ExchangeTile&) { HEDDLE_CHECK(false, "divided rows exchange tiles"); },
      [](const StoreExchanged&) { HEDDLE_CHECK(false, "divided rows exchange tiles"); },
      [&](const MapTiles& map) {
        HEDDLE_CHECK(map.per_row && stores == 0, "a map does not suit divided rows");
        stores += map.body.stores.empty() ? 0 : 1;
      },
      [](const ReduceTiles&) { HEDDLE_CHECK(false, "a reduction of a complete row"); },
      [&](const CombineParts&) {
        HEDDLE_CHECK(stores == 0, "an output per row is stored before the last sweep");
        ++sweeps;
      },
      [](const StoreStates&) { HEDDLE_CHECK(false, "divided rows store their states"); },
      [&](const LoopOverRow&) {
        HEDDLE_CHECK(stores == 0, "an output per row is stored before a loop over the row");
      },
  };
  for (const Statement& statement : program.statements) std::visit(count, statement);
  HEDDLE_CHECK(sweeps == layout.divided.sweeps && sweeps > 1,
               "the program has {} sweeps, but the layout has {}", sweeps, layout.divided.sweeps);
  HEDDLE_CHECK(
      program.frame.accumulators.size() == static_cast<size_t>(layout.divided.accumulators),
      "the layout has {} accumulators", layout.divided.accumulators);
}

// Checks a program whose rows are shared by clusters. Without a CombineParts, no block would wait
// for the start of the others.
void verifyCluster(const TileProgram& program) {
  const RowLayout& layout = program.layout;
  HEDDLE_CHECK(program.target == Target::Cuda && !program.square && !program.items &&
                   program.columns.empty() && (layout.bundled || layout.rows == 1) &&
                   layout.divided.parts == 0 && layout.blocks == 0 && layout.cluster <= 8 &&
                   layout.blockThreads() >= (layout.bundled ? 64 : 32) &&
                   layout.threads >= 2 * layout.cluster &&
                   layout.rows * layout.threads % (32 * layout.cluster) == 0,
               "the layout does not suit clusters");
  const bool combines = std::any_of(
      program.statements.begin(), program.statements.end(), [](const Statement& statement) {
        return std::holds_alternative<CombineParts>(statement);  // no other statement waits
      });
  HEDDLE_CHECK(combines, "the blocks of a cluster exchange nothing");
}

// Checks the order of the statements of a program of items. Emitters open the loops of a statement
// where the statement before it ends, so no other order has a meaning.
void verifyItems(const TileProgram& program) {
  const Schedule& s = *program.items;
  HEDDLE_CHECK(s.lanes > 0 && s.unroll > 0 && s.block > 0 && s.reduce_threads > 0 && s.splits > 0,
               "a number of the schedule is not positive");
  HEDDLE_CHECK(!program.square && program.columns.empty(),
               "a program of items has squares, or sums of columns");
  HEDDLE_CHECK(s.target == program.target, "the schedule is for another target");
  const bool is_outer = s.target == Target::Cuda && s.kind == ScheduleKind::OuterReduction;
  HEDDLE_CHECK(!s.overlaps || (is_outer && s.columnsOfBlock() > 0),
               "the blocks of a schedule overlap, but are not those of an outer reduction");
  HEDDLE_CHECK(!s.shifted || (s.overlaps && s.lanes > 1 && s.reduce_threads > 1),
               "columns are shifted, but blocks do not overlap or threads exchange nothing");
  enum class Done : uint8_t { Nothing, Reduced, Combined, Stored };
  const bool reduces = s.kind != ScheduleKind::Pointwise;
  Done done = Done::Nothing;
  const auto advance = [&](bool is_next, Done to) {
    HEDDLE_CHECK(is_next, "a statement of a program of items is at a wrong position");
    done = to;
  };
  const auto never = [&](const auto&) { advance(false, Done::Nothing); };
  const Overloaded follow{
      [&](const MapTiles& map) {
        HEDDLE_CHECK(map.results.empty(), "a map of items computes a tile");
        advance(map.per_row ? done == Done::Combined : !reduces && done == Done::Nothing,
                Done::Stored);
      },
      [&](const ReduceTiles& reduce) {
        HEDDLE_CHECK(!s.shifted || reduce.body.stores.empty(), "shifted columns are stored");
        advance(reduces && done == Done::Nothing, Done::Reduced);
      },
      [&](const CombineParts&) { advance(done == Done::Reduced, Done::Combined); },
      [&](const StoreStates&) { advance(done == Done::Combined, Done::Stored); },
      [&](const LoadTile& load) { never(load); },
      [&](const ExchangeTile& load) { never(load); },
      [&](const StoreExchanged& store) { never(store); },
      [&](const LoopOverRow& loop) { never(loop); },
  };
  for (const Statement& statement : program.statements) std::visit(follow, statement);
  HEDDLE_CHECK(done == Done::Stored, "a program of items stores nothing");
}

}  // namespace

void verify(const TileProgram& program) {
  const RowLayout& layout = program.layout;
  HEDDLE_CHECK(!program.square || program.square->vector > 0,
               "the vectors of squares have no elements");
  HEDDLE_CHECK(layout.vector > 0 && layout.registers > 0 && layout.threads > 0 && layout.rows > 0,
               "a number of the row layout is not positive");
  HEDDLE_CHECK(layout.shared_bytes == 0 || layout.rows == 1 || layout.bundled,
               "a block keeps several rows in shared memory");
  HEDDLE_CHECK(
      !layout.bundled || (program.columns.empty() && !layout.shifted && layout.blocks == 0),
      "bundles of rows are shifted, or have sums of columns");
  HEDDLE_CHECK(layout.row_blocks == 1 ||
                   (layout.rows == 1 && layout.divided.parts == 0 && program.columns.empty() &&
                    std::ranges::all_of(program.statements,
                                        [](const Statement& statement) {
                                          return std::holds_alternative<LoopOverRow>(statement);
                                        })),
               "the layout does not suit rows that several blocks share");
  if (layout.divided.parts > 0) verifyDivided(program);
  if (program.items) verifyItems(program);
  HEDDLE_CHECK(layout.cluster > 0, "a cluster has no blocks");
  if (layout.cluster > 1) verifyCluster(program);
  ProgramVerifier(program).check(program.statements);
}

int64_t liveBytes(const std::vector<Statement>& statements, const IdVector<TileId, Tile>& tiles) {
  return Uses(statements).mostBytes(tiles);
}

}  // namespace heddle::codegen
