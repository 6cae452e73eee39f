#include "host/passes/chunk/remainders.h"

#include <algorithm>

#include "host/passes/analysis/nominal_sizes.h"

namespace heddle::host {
namespace {

class RestFinder {
 public:
  RestFinder(const Program& program, const ChunkCut& cut) : program_(program), cut_(cut) {}

  // Adds the remainders that are zero if the slot has equal blocks without padding, and if the rows
  // of each block divide into `parts` parts.
  void slot(SlotId id, int64_t parts) {
    const Slot& of = program_.slots[id];
    for (size_t axis = 0; axis < of.tensor.rank(); ++axis) {
      const bool is_cut = !cut_.isFlat() && axis == cut_.axes.front();
      const int64_t blocks = devicesOf(program_, of, axis) * (is_cut ? parts : 1);
      if (blocks > 1) add(Size::mod(of.tensor.domain[axis].extent, Size(blocks)));
      if (!of.alloc.empty()) add(of.alloc[axis] - evenExtent(program_, of, axis));
    }
    if (cut_.isFlat() && parts > 1) add(Size::mod(rowsOf(program_, of, cut_), Size(parts)));
  }

  // Adds the remainders that are zero if the axes ChunkCut::ones of the slot have extent 1. Each of
  // these remainders is (extent - 1) squared, so it is not negative. A negative remainder could
  // cancel a positive one in the sum of all remainders (Chunked::rest).
  void ones(SlotId id) {
    const Slot& of = program_.slots[id];
    for (size_t axis : cut_.ones) {
      const Size more = evenExtent(program_, of, axis) - Size(1);
      add(more * more);
    }
  }

  void stage(const ChunkStage& stage) {
    for (size_t matmul : stage.matmuls) {
      const auto& call = std::get<CallLibrary>(program_.body[matmul].op);
      slot(call.inputs[0], 1);
      slot(call.outputs[0], 1);
    }
    if (!stage.kernel) return;
    const auto& launch = std::get<LaunchKernel>(program_.body[*stage.kernel].op);
    slot(launch.outputs[0], 1);
    for (SlotId id : launch.inputs) {
      if (!program_.slots[id].is_scalar) slot(id, 1);
    }
  }

  std::optional<Remainders> result() && {
    for (const auto& [text, rest] : remainders_) {
      std::vector<std::string> symbols;
      rest.collectSymbols(symbols);
      const bool differs = std::any_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
        return symbol == "rank" || symbol.ends_with(".index");
      });
      if (rest.isConstant() || differs) return std::nullopt;
    }
    return std::move(remainders_);
  }

 private:
  void add(const Size& rest) {
    if (!rest.isConstant(0)) remainders_.emplace(rest.str(), rest);
  }

  const Program& program_;
  const ChunkCut& cut_;
  Remainders remainders_;
};

}  // namespace

Size rowsOf(const Program& program, const Slot& slot, const ChunkCut& cut) {
  Size rows(1);
  for (size_t axis : cut.axes) rows = rows * evenExtent(program, slot, axis);
  return rows;
}

std::optional<Remainders> remaindersOf(const Program& program, const OverlapMatch& match,
                                       const ChunkCut& cut, int64_t units, bool with_front) {
  RestFinder remainders(program, cut);
  const bool gathers = match.kind == comm::CollectiveKind::Allgather;
  const auto& x = std::get<Communicate>(program.body[match.post].op);
  remainders.slot(x.in, gathers ? units : 1);
  remainders.slot(x.out, gathers ? 1 : units);
  remainders.ones(x.in);
  remainders.stage(match);
  if (with_front) {
    remainders.stage(*match.front);
    if (match.gather) {
      const auto& gather = std::get<Communicate>(program.body[*match.gather].op);
      remainders.slot(gather.in, units);
      remainders.slot(gather.out, 1);
      remainders.ones(gather.in);
    }
  }
  return std::move(remainders).result();
}

}  // namespace heddle::host
