#include "codegen/families/rows.h"

#include <algorithm>

#include "codegen/families/row_statements.h"
#include "codegen/plan/joint.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// The part of the schedule that the frame needs: lanes along the innermost reduced axis.
Schedule scheduleOf(const RowLayout& layout, const Space& space, Target target) {
  Schedule s;
  s.target = target;
  s.kind = ScheduleKind::InnerReduction;
  s.lanes = layout.vector;
  s.chunk = layout.vector;
  if (target == Target::Cpp) {
    s.chunk = cpuChunk(space);
    s.items_per_tile = cpuTileRows(space);
  }
  if (hasColumns(space)) s.splits = partsOf(layout, target, space);
  return s;
}

std::vector<const Body*> bodiesOf(const std::vector<Statement>& statements) {
  std::vector<const Body*> bodies;
  for (const Statement& statement : statements) {
    if (const auto* map = std::get_if<MapTiles>(&statement)) bodies.push_back(&map->body);
    if (const auto* reduce = std::get_if<ReduceTiles>(&statement)) bodies.push_back(&reduce->body);
    if (const auto* loop = std::get_if<LoopOverRow>(&statement)) {
      for (const Body* body : bodiesOf(loop->statements)) bodies.push_back(body);
    }
  }
  return bodies;
}

int64_t bytesOf(const std::vector<Accumulator>& columns) {
  int64_t bytes = 0;
  for (const Accumulator& column : columns) bytes += sizeOf(column.type);
  return bytes;
}

RowDemand demandOf(const RowStatements& written, const std::vector<Accumulator>& columns) {
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
                     const std::vector<Accumulator>& columns) {
  TileProgram program;
  program.target = target;
  program.layout = candidate.layout;
  program.tiles = std::move(written.tiles);
  program.statements = std::move(written.statements);
  const Schedule schedule = scheduleOf(candidate.layout, space, target);
  program.frame = buildFrame({entry, schedule, space, bodiesOf(program.statements),
                              std::move(written.accumulators), space.reducedCount()});
  for (size_t t = 0; t < space.tensors.size(); ++t) {
    const int column = space.tensors[t].column;
    if (column < 0) continue;
    program.columns.push_back({static_cast<int>(t), columns[static_cast<size_t>(column)]});
  }
  verify(program);
  return program;
}

struct BuiltRows {
  RowCandidate candidate;
  RowStatements written;
};

// Builds the statements of the best candidate.
class RowBuilder {
 public:
  RowBuilder(const Fusion& segment, const Analysis& analysis, const Space& space, Target target,
             const std::vector<Accumulator>& columns)
      : segment_(segment),
        analysis_(analysis),
        space_(space),
        target_(target),
        columns_(columns),
        values_(rowValuesOf(segment, analysis)) {}

  // Keeps the values whose computation is expensive or takes at least `many_ops` ops. Returns
  // nullopt if there is no candidate.
  std::optional<BuiltRows> build(int64_t many_ops) const {
    RowForm form;
    form.reciprocals = target_ == Target::Cuda;
    form.kept = keptValues(segment_, values_, many_ops);
    RowStatements written = write(form);
    RowDemand demand = demandOf(written, columns_);
    for (ValueId id : form.kept) demand.kept_bytes += sizeOf(segment_.tensor(id).dtype);
    demand.several_passes = needsSeveralPasses(segment_, analysis_);
    RowForm ahead = form;
    ahead.ahead = true;
    if (target_ == Target::Cuda && !columns_.empty()) {
      const RowStatements next = write(ahead);
      demand.ahead_bytes = liveBytes(next.statements, next.tiles) + next.loaded + bytesOf(columns_);
    }
    const std::vector<RowCandidate> candidates = rowCandidates(space_, target_, demand);
    if (candidates.empty()) return std::nullopt;
    const RowCandidate& best = candidates.front();
    if (best.looped) return BuiltRows{best, looped(form)};
    return BuiltRows{best, best.ahead ? write(ahead) : std::move(written)};
  }

 private:
  RowStatements write(const RowForm& form) const {
    return writeRowStatements(segment_, analysis_, space_, values_, form);
  }

  RowStatements looped(RowForm form) const {
    form.looped = target_ == Target::Cuda;
    form.kept.clear();
    Analysis joined = analysis_;
    if (form.looped) joined.joint = jointReductions(segment_, analysis_);
    return writeRowStatements(segment_, joined, space_, rowValuesOf(segment_, joined), form);
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const Space& space_;
  const Target target_;
  const std::vector<Accumulator>& columns_;
  const RowValues values_;
};

}  // namespace

bool needsSeveralPasses(const Fusion& segment, const Analysis& analysis) {
  if (analysis.reductions.empty()) return false;
  const RowValues values = rowValuesOf(segment, analysis);
  if (values.passes() > 2) return true;
  const IdVector<ValueId, bool> leaves(segment.values().size(), false);
  const std::vector<ValueId> last = computedAlongRow(segment, values, 1, leaves);
  return std::any_of(last.begin(), last.end(), [&](ValueId id) { return values.level[id] > 0; });
}

std::optional<TileProgram> buildRows(const Fusion& segment, const Analysis& analysis,
                                     const Space& given, Target target, const std::string& entry,
                                     const std::vector<Accumulator>& columns) {
  const Space space = withRows(given);
  const RowBuilder builder(segment, analysis, space, target, columns);
  // Blocks with columns have registers for products of loaded tiles, unless the rows are long.
  constexpr int64_t kManyOps = 3;
  std::optional<BuiltRows> built;
  if (target == Target::Cuda && !columns.empty()) built = builder.build(kManyOps);
  if (!built || !built->candidate.ahead) built = builder.build(kKeepExpensive);
  if (!built) return std::nullopt;
  return assemble(built->candidate, std::move(built->written), space, target, entry, columns);
}

int64_t partsOf(const RowLayout& layout, Target target, const Space& space) {
  if (target == Target::Cuda) return layout.blocks * layout.rows;
  return ceilDiv(space.keptCount(), cpuTileRows(space));
}

}  // namespace heddle::codegen
