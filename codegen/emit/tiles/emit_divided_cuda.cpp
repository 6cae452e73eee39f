// Writes the CUDA text of programs whose rows are divided among blocks
// (codegen/tile/divided_rows.h).
#include <algorithm>

#include "codegen/emit/tiles/cuda_tile_emitter.h"
#include "ir/base/overloaded.h"

namespace heddle::codegen {

// Writes the loop in which a block takes work items. Thread 0 takes the next ticket while the block
// computes an item. Successive items use two elements of `ticket` in turn, so one barrier per item
// is enough.
void CudaTileEmitter::writeItems() {
  const int32_t sweeps = layout_.divided.sweeps;
  out_.line("const int share = hd::thread();");
  out_.line("constexpr int row = 0;");
  out_.line("const hd::Board board{(unsigned*)args.board, kept_items, splits};");
  out_.line(fmt::format("const Index distance = splits + ((Index)hd::blocks() + {}) / {};",
                        sweeps - 1, sweeps));
  out_.line(fmt::format("const Index tickets = (kept_items * splits + distance * {}) * {};",
                        sweeps - 1, sweeps));
  out_.line("__shared__ hd::SharedBytes<16> ticket_bytes;");
  out_.line("const hd::SharedArray<unsigned> ticket(ticket_bytes);");
  out_.line("unsigned next = share == 0 ? hd::takeTicket(board.tickets) : 0;");
  out_.open("for (int turn = 0;; turn ^= 1) {");
  out_.line("if (share == 0) ticket[turn] = next;");
  out_.line("hd::barrier();");
  out_.line("const Index item = (Index)ticket[turn];");
  out_.line("if (item >= tickets) break;");
  out_.line("if (share == 0) next = hd::takeTicket(board.tickets);");
  openItem();
  for (int sweep = 0; sweep < sweeps; ++sweep) writeSweep(sweep);
  out_.close();
  out_.close();
}

// Writes the variables that say which part of which row the block computes. Some tickets belong to
// no part: the first tickets of later sweeps, and the last tickets of earlier sweeps.
void CudaTileEmitter::openItem() {
  const int32_t sweeps = layout_.divided.sweeps;
  out_.line(fmt::format("const int sweep = (int)(item % {});", sweeps));
  out_.line(fmt::format("const Index in_sweep = item / {} - sweep * distance;", sweeps));
  out_.line("const Index kept = in_sweep / splits;");
  out_.open("if (in_sweep >= 0 && kept < kept_items) {");
  out_.line("constexpr bool active = true;");
  writeCoordinates(out_, frame_.kept);
  if (layout_.shifted) writeShift();
  out_.line(layout_.divided.reversed
                ? "const Index number = sweep % 2 == 0 ? in_sweep - kept * splits : (kept + 1) * "
                  "splits - 1 - in_sweep;"
                : "const Index number = in_sweep - kept * splits;");
  out_.line(fmt::format("const Index vectors_of_row = {};",
                        layout_.shifted ? "vectors" : "reduced_items"));
  out_.line("const Index row_begin = number * span;");
  out_.line(
      "const Index row_end = number + 1 < splits ? hd::smaller<Index>(row_begin + span, "
      "vectors_of_row) : vectors_of_row;");
}

// Writes the code of the items of one sweep. The code fetches the results of earlier sweeps, and
// computes again the tiles per row that these sweeps computed.
void CudaTileEmitter::writeSweep(int sweep) {
  is_last_sweep_ = sweep + 1 == layout_.divided.sweeps;
  out_.open(fmt::format("if (sweep == {}) {{", sweep));
  // Early loads are written only for the second sweep of a program with two sweeps whose rows are
  // not shifted. In other programs, early loads would need too many registers: for the masks of
  // shifted rows, or for the states of several sweeps.
  if (sweep == 1 && layout_.divided.sweeps == 2 && !layout_.shifted) loadEarly(sweep);
  int at = 0;
  for (const Statement& statement : program_.statements) {
    // Only CombineParts ends a sweep.
    const auto* combine = std::get_if<CombineParts>(&statement);
    if (at < sweep) {
      writeEarlier(statement);
    } else if (at == sweep) {
      write(statement);
      if (combine != nullptr) publish(*combine);
    }
    if (combine == nullptr) continue;
    ++at;
    if (at == sweep && is_last_sweep_) findLastItem();
  }
  out_.close();
}

// Writes the loads of the first iteration of the loop of a sweep (LoopOverRow) before the text that
// waits for other blocks. The threads then wait for the loads and for the other blocks at the same
// time.
void CudaTileEmitter::loadEarly(int sweep) {
  int at = 0;
  for (const Statement& statement : program_.statements) {
    if (std::holds_alternative<CombineParts>(statement)) ++at;  // nothing else ends a sweep
    const auto* loop = std::get_if<LoopOverRow>(&statement);    // nothing else reads the row
    if (at != sweep || loop == nullptr) continue;
    for (const Statement& inner : loop->statements) {
      const auto* map = std::get_if<MapTiles>(&inner);
      const auto* reduce = std::get_if<ReduceTiles>(&inner);
      if (map == nullptr && reduce == nullptr) continue;  // no other statement has its own loads
      for (const LoadTile& load : map != nullptr ? map->loads : reduce->loads) loadEarly(load);
    }
  }
}

void CudaTileEmitter::loadEarly(const LoadTile& load) {
  declareLoaded(load, "tile");
  out_.open("{");
  out_.line("const Index part = row_begin;");
  in_loop_ = true;
  loadInto(load, "tile");
  in_loop_ = false;
  out_.close();
  early_.insert(load.tile);
}

// Writes the loads of all vectors of a thread in one iteration of the loop of a sweep
// (LoopOverRow). If loadEarly() has already written the loads of the first iteration, this
// iteration skips them.
void CudaTileEmitter::loadTogether(const std::vector<LoadTile>& loads) {
  for (const LoadTile& load : loads) {
    if (!early_.contains(load.tile)) {
      write(load);
      continue;
    }
    out_.open("if (part > row_begin) {");
    loadInto(load, "tile");
    out_.close();
  }
}

// Writes what an item must repeat of a statement of an earlier sweep.
void CudaTileEmitter::writeEarlier(const Statement& statement) {
  const Overloaded again{
      [&](const CombineParts& combine) { fetch(combine); },
      [&](const LoadTile& load) { write(load); },  // loads a tile per row
      [&](const MapTiles& map) { write(map); },    // computes tiles per row
      [](const ExchangeTile&) {},
      [](const StoreExchanged&) {},
      [](const StoreStates&) {},
      [](const ReduceTiles&) {},
      [](const LoopOverRow&) {},
  };
  std::visit(again, statement);
}

// Writes text that combines the states that an earlier sweep has stored for all parts of the row.
// Thread i begins with part i.
void CudaTileEmitter::fetch(const CombineParts& combine) {
  for (AccumulatorId a : combine.accumulators) {
    const Accumulator& acc = accumulator(a);
    const std::string into = fmt::format("acc{}[0]", a);
    out_.line(fmt::format("{} acc{}[1] = {{{}}};", stateType(acc), a, identityText(acc)));
    out_.open(fmt::format("for (Index i = share; i < splits; i += {}) {{", layout_.threads));
    out_.line(fmt::format("{} state;", stateType(acc)));
    out_.line(fmt::format("hd::awaitState(board.slot({}, kept, i), state);", a));
    out_.line(fmt::format("{} = {};", into, combineText(acc, into, "state")));
    out_.close();
  }
  combiner_.threads(combine.accumulators);
}

// Writes text that stores the states of this part.
void CudaTileEmitter::publish(const CombineParts& combine) {
  for (AccumulatorId a : combine.accumulators) {
    out_.line(
        fmt::format("if (share == 0) hd::publish(board.slot({}, kept, number), acc{}[0]);", a, a));
  }
}

// If the program has outputs with one element per row, writes the variable `is_last`. It is true in
// thread 0 of one item per row. Among the items of the last sweep, this item is the last one to
// read the inputs with one element per row. This item stores the outputs with one element per row,
// because such an output may have the memory of such an input. The barrier of CombineParts ensures
// that all threads of this block have read their tiles per row.
void CudaTileEmitter::findLastItem() {
  const bool stores = std::any_of(
      program_.statements.begin(), program_.statements.end(), [](const Statement& statement) {
        const auto* map = std::get_if<MapTiles>(&statement);  // no other statement stores per row
        return map != nullptr && !map->body.stores.empty();
      });
  if (!stores) return;
  out_.line(
      "const bool is_last = share == 0 && hd::arriveLast(board.arrivals(kept), "
      "(unsigned)splits);");
}

}  // namespace heddle::codegen
