#include "host/passes/chunk/remainders.h"

#include <algorithm>

#include "host/passes/analysis/nominal_sizes.h"

namespace heddle::host {
namespace {

class RestFinder {
 public:
  RestFinder(const Program& program, const ChunkCut& cut) : program_(program), cut_(cut) {}

  // Even blocks, without padding, the rows of each in so many parts.
  void slot(SlotId id, int64_t parts) {
    const Slot& of = program_.slots[static_cast<size_t>(id)];
    for (size_t axis = 0; axis < of.tensor.rank(); ++axis) {
      const bool is_cut = !cut_.isFlat() && axis == cut_.axes.front();
      const int64_t blocks = devicesOf(program_, of, axis) * (is_cut ? parts : 1);
      if (blocks > 1) add(Size::mod(of.tensor.domain[axis].extent, Size(blocks)));
      if (!of.alloc.empty()) add(of.alloc[axis] - evenExtent(program_, of, axis));
    }
    if (cut_.isFlat() && parts > 1) add(Size::mod(rowsOf(program_, of, cut_), Size(parts)));
  }

  void ones(SlotId id) {
    const Slot& of = program_.slots[static_cast<size_t>(id)];
    for (size_t axis : cut_.ones) {
      const Size more = evenExtent(program_, of, axis) - Size(1);
      add(more * more);
    }
  }

  void stage(const ChunkStage& stage) {
    for (size_t product : stage.products) {
      const auto& call = std::get<CallLibrary>(program_.body[product].op);
      slot(call.inputs[0], 1);
      slot(call.outputs[0], 1);
    }
    if (!stage.kernel) return;
    const auto& launch = std::get<LaunchKernel>(program_.body[*stage.kernel].op);
    slot(launch.outputs[0], 1);
    for (SlotId id : launch.inputs) {
      if (!program_.slots[static_cast<size_t>(id)].is_scalar) slot(id, 1);
    }
  }

  std::optional<ChunkRests> result() && {
    for (const auto& [text, rest] : rests_) {
      std::vector<std::string> symbols;
      rest.collectSymbols(symbols);
      const bool differs = std::any_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
        return symbol == "rank" || symbol.ends_with(".index");
      });
      if (rest.isConstant() || differs) return std::nullopt;
    }
    return std::move(rests_);
  }

 private:
  void add(const Size& rest) {
    if (!rest.isConstant(0)) rests_.emplace(rest.str(), rest);
  }

  const Program& program_;
  const ChunkCut& cut_;
  ChunkRests rests_;
};

}  // namespace

Size rowsOf(const Program& program, const Slot& slot, const ChunkCut& cut) {
  Size rows(1);
  for (size_t axis : cut.axes) rows = rows * evenExtent(program, slot, axis);
  return rows;
}

std::optional<ChunkRests> chunkRests(const Program& program, const ChunkSite& site,
                                     const ChunkCut& cut, int64_t units, bool with_front) {
  RestFinder rests(program, cut);
  const bool gathers = site.kind == comm::CollectiveKind::Allgather;
  const auto& x = std::get<Communicate>(program.body[site.post].op);
  rests.slot(x.in, gathers ? units : 1);
  rests.slot(x.out, gathers ? 1 : units);
  rests.ones(x.in);
  rests.stage(site);
  if (with_front) {
    rests.stage(*site.front);
    if (site.gather) {
      const auto& gather = std::get<Communicate>(program.body[*site.gather].op);
      rests.slot(gather.in, units);
      rests.slot(gather.out, 1);
      rests.ones(gather.in);
    }
  }
  return std::move(rests).result();
}

}  // namespace heddle::host
