#include "codegen/families/rows/rows.h"

#include <algorithm>

#include "codegen/families/rows/bundles.h"
#include "codegen/families/rows/row_statements.h"
#include "codegen/families/rows/row_vectors.h"
#include "codegen/plan/joint.h"
#include "ir/base/ceil_div.h"
#include "ir/base/overloaded.h"

namespace heddle::codegen {
namespace {

std::vector<const Body*> bodiesOf(const std::vector<Statement>& statements) {
  std::vector<const Body*> bodies;
  const Overloaded append{
      [](const LoadTile&) {},
      [](const ExchangeTile&) {},
      [](const StoreExchanged&) {},
      [](const StoreStates&) {},
      [&](const MapTiles& map) { bodies.push_back(&map.body); },
      [&](const ReduceTiles& reduce) { bodies.push_back(&reduce.body); },
      [](const CombineParts&) {},
      [&](const LoopOverRow& loop) {
        const std::vector<const Body*> inner = bodiesOf(loop.statements);
        bodies.insert(bodies.end(), inner.begin(), inner.end());
      },
  };
  for (const Statement& statement : statements) std::visit(append, statement);
  return bodies;
}

int64_t bytesOf(const IdVector<AccumulatorId, Accumulator>& columns) {
  int64_t bytes = 0;
  for (const Accumulator& column : columns) bytes += sizeOf(column.type);
  return bytes;
}

RowDemand demandOf(const RowStatements& written,
                   const IdVector<AccumulatorId, Accumulator>& columns) {
  RowDemand demand;
  demand.live_bytes = liveBytes(written.statements, written.tiles) + bytesOf(columns);
  demand.loaded_bytes = written.loaded;
  for (const Body* body : bodiesOf(written.statements)) {
    demand.ops = std::max(demand.ops, opsOf(*body));
  }
  demand.accumulators = static_cast<int64_t>(written.accumulators.size());
  return demand;
}

TileProgram assemble(const RowCandidate& candidate, RowStatements written, const Space& space,
                     Target target, const std::string& entry,
                     const IdVector<AccumulatorId, Accumulator>& columns) {
  TileProgram program;
  program.target = target;
  program.layout = candidate.layout;
  program.tiles = std::move(written.tiles);
  program.statements = std::move(written.statements);
  const Schedule schedule = rowSchedule(candidate.layout, space, target);
  program.frame = buildFrame({entry, schedule, space, bodiesOf(program.statements),
                              std::move(written.accumulators), space.reducedCount(),
                              candidate.layout.divided.parts > 0});
  for (size_t t = 0; t < space.tensors.size(); ++t) {
    const int column = space.tensors[t].column;
    if (column < 0) continue;
    program.columns.push_back({static_cast<int>(t), columns[AccumulatorId(column)]});
  }
  verify(program);
  return program;
}

// Writes the statements of a segment for each RowVariant, and computes the RowDemand of each
// variant.
class RowBuilder {
 public:
  RowBuilder(const Fusion& segment, const Analysis& analysis, const Space& rows, Target target,
             const IdVector<AccumulatorId, Accumulator>& columns)
      : segment_(segment),
        analysis_(analysis),
        rows_(rows),
        target_(target),
        columns_(columns),
        values_(rowValuesOf(segment, analysis)) {}

  RowDemands demands() const {
    RowDemands demands;
    demands.expensive = demand(RowVariant::Expensive);
    if (loadsAhead()) demands.many_ops = demand(RowVariant::ManyOps);
    const bool several = needsSeveralSweeps(segment_, analysis_);
    if (target_ == Target::Cuda && columns_.empty() && several) {
      demands.loaded = demand(RowVariant::Loaded);
    }
    demands.sweeps = sweeps();
    return demands;
  }

  RowStatements statements(const RowCandidate& candidate) const {
    RowForm form = formOf(candidate.variant);
    form.ahead = candidate.ahead;
    form.looped = candidate.looped && target_ == Target::Cuda;
    if (candidate.looped) form.kept.clear();
    // Bundles have no joint reductions. An accumulator of a joint reduction combines several
    // elements at once, but the elements of a vector belong to different rows.
    if (candidate.layout.bundled) {
      return writeRowStatements(segment_, analysis_, rows_, values_, form);
    }
    return form.looped ? writeJoined(form) : write(form, candidate.variant);
  }

 private:
  // Returns whether a block may load its next row while it processes the current one.
  bool loadsAhead() const { return target_ == Target::Cuda && !columns_.empty(); }

  RowForm formOf(RowVariant variant) const {
    constexpr int64_t kManyOps = 3;
    RowForm form;
    form.reciprocals = target_ == Target::Cuda;
    if (variant == RowVariant::Loaded) return form;
    form.kept =
        keptValues(segment_, values_, variant == RowVariant::ManyOps ? kManyOps : kKeepExpensive);
    return form;
  }

  RowDemand demand(RowVariant variant) const {
    RowForm form = formOf(variant);
    const RowStatements written = write(form, variant);
    RowDemand demand = demandOf(written, columns_);
    for (ValueId id : form.kept) demand.kept_bytes += sizeOf(segment_.tensor(id).dtype);
    demand.several_sweeps = needsSeveralSweeps(segment_, analysis_);
    demand.joined_sweeps = target_ == Target::Cuda
                               ? needsSeveralSweeps(segment_, withJointReductions())
                               : demand.several_sweeps;
    if (!loadsAhead()) return demand;
    form.ahead = true;
    const RowStatements next = write(form, variant);
    demand.ahead_bytes = liveBytes(next.statements, next.tiles) + next.loaded + bytesOf(columns_);
    return demand;
  }

  RowStatements write(const RowForm& form, RowVariant variant) const {
    if (variant == RowVariant::Loaded) return writeJoined(form);
    return writeRowStatements(segment_, analysis_, rows_, values_, form);
  }

  // Counts the sweeps. The last sweep reads nothing if there are no outputs along the row.
  RowSweeps sweeps() const {
    const RowValues values =
        target_ == Target::Cuda ? rowValuesOf(segment_, withJointReductions()) : values_;
    const auto reads =
        std::count_if(values.roots.begin(), values.roots.end(),
                      [](const std::vector<ValueId>& roots) { return !roots.empty(); });
    return {std::max(static_cast<int32_t>(reads), 1),
            static_cast<int32_t>(values.reductions.size())};
  }

  Analysis withJointReductions() const {
    Analysis joined = analysis_;
    joined.joint = jointReductions(segment_, analysis_);
    return joined;
  }

  // Writes the statements with joint reductions: one sweep computes both reductions of a pair
  // (codegen/plan/joint.h).
  RowStatements writeJoined(const RowForm& form) const {
    const Analysis joined = withJointReductions();
    return writeRowStatements(segment_, joined, rows_, rowValuesOf(segment_, joined), form);
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const Space& rows_;
  const Target target_;
  const IdVector<AccumulatorId, Accumulator>& columns_;
  const RowValues values_;
};

}  // namespace

bool needsSeveralSweeps(const Fusion& segment, const Analysis& analysis) {
  if (analysis.reductions.empty()) return false;
  const RowValues values = rowValuesOf(segment, analysis);
  if (values.sweeps() > 2) return true;
  const IdVector<ValueId, bool> leaves(segment.values().size(), false);
  const std::vector<ValueId> last = computedAlongRow(segment, values, 1, leaves);
  return std::any_of(last.begin(), last.end(), [&](ValueId id) { return values.level[id] > 0; });
}

RowDemands rowDemands(const Fusion& segment, const Analysis& analysis, const Space& rows,
                      Target target, const IdVector<AccumulatorId, Accumulator>& columns) {
  return RowBuilder(segment, analysis, rows, target, columns).demands();
}

Schedule rowSchedule(const RowLayout& layout, const Space& rows, Target target) {
  Schedule s;
  s.target = target;
  s.kind = layout.bundled ? ScheduleKind::OuterReduction : ScheduleKind::InnerReduction;
  s.lanes = layout.vector;
  s.chunk = layout.vector;
  if (target == Target::Cpp) {
    s.chunk = layout.bundled ? cpuBundleRows(layout, rows) : cpuChunk(rows);
    s.items_per_tile = layout.bundled ? cpuTileBundles(layout, rows) : cpuTileRows(rows);
  }
  if (hasColumns(rows)) s.splits = partsOf(layout, target, rows);
  if (layout.divided.parts > 0) s.splits = layout.divided.parts;
  return s;
}

std::optional<TileProgram> buildRows(const Fusion& segment, const Analysis& analysis,
                                     const Space& space, Target target, const std::string& entry,
                                     const KernelChoice* choice, KernelChoice& made,
                                     const IdVector<AccumulatorId, Accumulator>& columns) {
  const Space rows = withRows(space);
  const RowBuilder builder(segment, analysis, rows, target, columns);
  const std::optional<RowCandidate> chosen = chooseRows(rows, target, builder.demands(), choice);
  if (!chosen) return std::nullopt;
  made = choiceOf(*chosen, target);
  return assemble(*chosen, builder.statements(*chosen), rows, target, entry, columns);
}

int64_t workspaceOf(const RowLayout& layout, const Space& rows) {
  return layout.divided.parts > 0 ? boardBytes(layout.divided, rows.keptCount()) : 0;
}

int64_t partsOf(const RowLayout& layout, Target target, const Space& space) {
  if (target == Target::Cuda) return layout.blocks * layout.rows;
  return ceilDiv(space.keptCount(), cpuTileRows(space));
}

}  // namespace heddle::codegen
