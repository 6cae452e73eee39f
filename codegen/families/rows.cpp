#include "codegen/families/rows.h"

#include <algorithm>
#include <bit>

#include "codegen/families/row_statements.h"
#include "codegen/plan/joint.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// The number of bytes of tiles that one thread may hold. If a block has 1024 threads, the registers
// of a thread have 256 bytes, and the body needs some of them.
constexpr int64_t kTileBytes = 128;
// The same limit if only kColumnThreads or kAheadThreads threads share a multiprocessor. With more
// elements per thread, a row needs fewer instructions, because fewer threads exchange their parts.
constexpr int32_t kColumnThreads = 512;
constexpr int64_t kColumnTileBytes = 384;
constexpr int32_t kAheadThreads = 384;
constexpr int64_t kAheadTileBytes = 576;
// The number of bytes that one thread should load before it waits, so that enough loads are in
// flight.
constexpr int64_t kBytesInFlight = 64;
// The limit for the unrolled code of a thread: operations of a body (RowDemand::ops) times elements
// of the thread. Longer code takes seconds to compile.
constexpr int64_t kMostUnrolled = 4096;
// The shared memory that a block may use without an opt-in. Each accumulator takes 8 bytes per
// warp.
constexpr int64_t kSharedBytes = 48 << 10;
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kLoopThreads = 512;
constexpr int64_t kShortestBlock = 128;
// With fewer rows than this, one row per block leaves multiprocessors idle (132 on an H100).
constexpr int64_t kFewRows = 132;
// At least this many threads should share a row, so that the vectors that they read together are
// complete sectors of memory. With kManyThreads threads or more, each multiprocessor has more work
// than it can start at once.
constexpr int64_t kFewestThreads = 4;
constexpr int64_t kManyThreads = int64_t{132} * 2048 * 2;
// Limits for CPU kernels.
// - kMostKept: elements of a row in arrays, so that the arrays stay in the L2 cache.
// - kMostArrayBytes: bytes of all arrays, which are on the stack.
// - kFewCpuRows: a smaller number of rows does not keep all threads of a pool busy. This does not
//   matter if all rows together have at most kShortWork elements.
constexpr int64_t kMostKept = 16384;
constexpr int64_t kMostArrayBytes = 256 << 10;
constexpr int64_t kFewCpuRows = 64;
constexpr int64_t kShortWork = 1 << 18;
constexpr int64_t kShortestCpuColumns = 16;

// Returns whether the elements of a row are neighbours in every tensor that changes along the row.
bool isContiguousAlongRow(const Space& space) {
  const size_t lane = space.extents.size() - 1;
  if (space.extents[lane] == 1) return true;
  return std::all_of(space.tensors.begin(), space.tensors.end(),
                     [&](const SpaceTensor& t) { return t.strides[lane] <= 1; });
}

// Returns whether all vectors of a tensor along the row begin at aligned addresses.
bool hasWholeVectors(const Space& space, int64_t vector) {
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() != 1) continue;
    const int64_t bytes = std::min<int64_t>(vector * sizeOf(t.dtype), kFullAlignment);
    if (t.alignment % bytes != 0) return false;
    for (size_t axis = 0; axis + 1 < space.extents.size(); ++axis) {
      if (t.strides[axis] % vector != 0) return false;
    }
  }
  return true;
}

struct Vectors {
  int64_t length = 1;
  bool shifted = false;  // RowLayout::shifted
};

// Returns the smallest number of vectors for which a row uses the shifted layout. The masks of the
// first and the last vector take time in each pass over the row, so short rows gain nothing.
int64_t shortestShifted(bool several_passes) { return several_passes ? 64 : 4; }

bool hasColumns(const Space& space) {
  return std::any_of(space.tensors.begin(), space.tensors.end(),
                     [](const SpaceTensor& t) { return t.column >= 0; });
}

// Chooses the vectors of the rows. Rows with columns are never shifted: a thread adds the same
// elements of all its rows, and shifted rows would give it different elements.
Vectors vectorsOf(const Space& space, int64_t ops, bool several_passes) {
  int64_t widest = 1;
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() == 1 && t.column < 0) widest = std::max(widest, sizeOf(t.dtype));
  }
  int64_t length = std::min<int64_t>(16 / widest, 8);
  while (length > 1 && length * ops > kMostUnrolled) length /= 2;
  const bool one_axis = space.extents.size() == static_cast<size_t>(space.kept) + 1;
  if (length > 1 && one_axis && !hasColumns(space) && !hasWholeVectors(space, length) &&
      space.extents.back() >= shortestShifted(several_passes) * length) {
    return {length, true};
  }
  while (length > 1 && (length > space.extents.back() || !hasWholeVectors(space, length))) {
    length /= 2;
  }
  return {length, false};
}

int64_t vectorsPerRow(const Space& space, int64_t vector) {
  int64_t vectors = ceilDiv(space.extents.back(), vector);
  for (size_t i = static_cast<size_t>(space.kept); i + 1 < space.extents.size(); ++i) {
    vectors *= space.extents[i];
  }
  return vectors;
}

// Returns a smaller number of threads if far fewer threads are then idle. For example, 64 threads
// process 192 vectors in 3 steps without idle threads. 16 threads process 34 vectors in 3 steps, in
// which 14 of 48 places are empty.
int64_t fuller(int64_t threads, int64_t vectors, int64_t most) {
  constexpr double kGain = 1.15;
  const int64_t fewest = std::min<int64_t>(threads, 8);  // pieces of 128 bytes
  const auto fullness = [vectors](int64_t n) {
    return static_cast<double>(vectors) / static_cast<double>(n * ceilDiv(vectors, n));
  };
  int64_t best = threads;
  for (int64_t n = threads / 2; n >= fewest && ceilDiv(vectors, n) <= most; n /= 2) {
    if (fullness(n) > kGain * fullness(best)) best = n;
  }
  return best;
}

std::vector<RowCandidate> cudaCandidates(const Space& space, const RowDemand& demand) {
  const auto [vector, shifted] = vectorsOf(space, demand.ops, demand.several_passes);
  // A shifted row may need one more vector.
  const int64_t vectors =
      shifted ? ceilDiv(space.extents.back() + vector - 1, vector) : vectorsPerRow(space, vector);
  const auto fitting = [vector = vector](int64_t limit, int64_t per_element) {
    return std::max<int64_t>(limit / (std::max<int64_t>(per_element, 1) * vector), 1);
  };
  const int64_t tile_bytes = hasColumns(space) ? kColumnTileBytes : kTileBytes;
  const int64_t most =
      std::min(fitting(tile_bytes, demand.live_bytes), fitting(kMostUnrolled, demand.ops));
  const int64_t wanted =
      hasColumns(space) ? most : std::min(fitting(kBytesInFlight, demand.loaded_bytes), most);
  // With few threads per row, less time goes into the exchange of parts. If there are not enough
  // rows to occupy all threads of the GPU, a row gets at least a warp.
  const int64_t least = space.keptCount() * kFewestThreads >= kManyThreads ? kFewestThreads : 32;
  // The threads that share a row store their own sums of columns. Blocks that process one row at a
  // time therefore store the fewest sums.
  const int64_t shortest = hasColumns(space) ? kShortestBlock : least;
  auto threadsFor = [vectors, least = shortest](int64_t registers) {
    const auto threads = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(ceilDiv(vectors, registers), 1))));
    const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(vectors)));
    return std::max(threads, std::min(least, all));
  };
  RowCandidate candidate;
  RowLayout& layout = candidate.layout;
  int64_t threads = threadsFor(wanted);
  threads = fuller(threads, vectors, most);
  // One thread reads a row of a few elements alone, which saves the exchange of parts.
  constexpr int64_t kFewElements = 16;
  if (vector == 1 && vectors <= std::min(kFewElements, most)) threads = 1;
  const auto warps =
      static_cast<uint64_t>(kSharedBytes / (8 * std::max<int64_t>(demand.accumulators, 1)));
  const int64_t most_threads = std::min(hasColumns(space) ? int64_t{kColumnThreads} : kMostThreads,
                                        32 * static_cast<int64_t>(std::bit_floor(warps)));
  threads = std::min(threads, most_threads);
  int64_t registers = std::max<int64_t>(ceilDiv(vectors, threads), 1);  // a row may be empty
  if (registers > most) {
    candidate.looped = true;
    threads = std::min(kLoopThreads, most_threads);
    registers = wanted;
  }
  layout.vector = static_cast<int32_t>(vector);
  layout.threads = static_cast<int32_t>(threads);
  layout.registers = static_cast<int32_t>(registers);
  layout.rows = static_cast<int32_t>(std::max<int64_t>(kShortestBlock / threads, 1));
  layout.shifted = shifted;
  layout.exact = !shifted && space.extents.back() % vector == 0;
  layout.full = layout.exact && !candidate.looped && vectors == threads * registers;
  if (candidate.looped && (hasColumns(space) || space.keptCount() < kFewRows)) return {};
  if (hasColumns(space)) {
    // Use separate launches for the columns in two cases. Few blocks leave multiprocessors idle.
    // Blocks with many rows store many sums of short columns. Separate launches divide the columns
    // among all multiprocessors.
    constexpr int32_t kMostRows = 2;
    const int64_t groups = ceilDiv(space.keptCount(), layout.rows);
    const bool is_large = space.keptCount() * space.reducedCount() > kShortWork;
    if (is_large && (groups < kFewRows || layout.rows > kMostRows)) return {};
    constexpr int64_t kProcessors = 132;
    const int32_t block = layout.rows * layout.threads;
    const int64_t ahead_bytes = int64_t{layout.registers} * layout.vector * demand.ahead_bytes;
    const bool fits_fewer = ahead_bytes <= kAheadTileBytes && kAheadThreads % block == 0;
    candidate.ahead = ahead_bytes <= kColumnTileBytes || fits_fewer;
    layout.column_threads =
        ahead_bytes > kColumnTileBytes && fits_fewer ? kAheadThreads : kColumnThreads;
    const int64_t most = kProcessors * (layout.column_threads / block);
    layout.blocks = std::clamp<int64_t>(groups, 1, most);
  }
  return {candidate};
}

// Cpp: returns the number of elements of one item, which one inner loop computes.
int64_t cpuChunk(const Space& space) {
  constexpr int64_t kMost = 4096;
  return std::clamp<int64_t>(space.extents.back(), 1, kMost);
}

std::vector<RowCandidate> cpuCandidates(const Space& space, const RowDemand& demand) {
  const int64_t rows = space.keptCount();
  // If rows are short, computing the columns in a separate launch is faster.
  if (hasColumns(space) && space.reducedCount() < kShortestCpuColumns) return {};
  if (rows < kFewCpuRows && rows * space.reducedCount() > kShortWork) return {};
  RowCandidate candidate;
  candidate.layout.vector = 16;
  const int64_t chunk = cpuChunk(space);
  const int64_t elements = vectorsPerRow(space, chunk) * chunk;
  const auto capacity =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(elements, 64))));
  candidate.looped = elements > kMostKept || capacity * demand.kept_bytes > kMostArrayBytes;
  if (!candidate.looped) candidate.layout.capacity = capacity;
  return {candidate};
}

// Cpp: returns the number of rows of a tile. With columns there are few tiles, because each tile is
// a part that stores its own sums.
int64_t cpuTileRows(const Space& space) {
  constexpr int64_t kTileElements = 32768;
  constexpr int64_t kMostParts = 64;
  const int64_t rows =
      std::max<int64_t>(1, kTileElements / std::max<int64_t>(space.reducedCount(), 1));
  return hasColumns(space) ? std::max(rows, ceilDiv(space.keptCount(), kMostParts)) : rows;
}

// The form of a program that reads each row once.
RowForm keptForm(const Fusion& segment, const RowValues& values, Target target) {
  RowForm form;
  form.reciprocals = target == Target::Cuda;
  form.kept = keptValues(segment, values);
  return form;
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

TileProgram assemble(const RowCandidate& candidate, RowStatements written, const Space& space,
                     Target target, const std::string& entry,
                     const std::vector<Accumulator>& columns) {
  TileProgram program;
  program.target = target;
  program.layout = candidate.layout;
  program.tiles = std::move(written.tiles);
  program.statements = std::move(written.statements);
  const Schedule schedule = rowSchedule(candidate.layout, space, target);
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

}  // namespace

Schedule rowSchedule(const RowLayout& layout, const Space& space, Target target) {
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

Space withRows(Space space) {
  if (!space.hasReduced()) --space.kept;
  return space;
}

bool needsSeveralPasses(const Fusion& segment, const Analysis& analysis) {
  if (analysis.reductions.empty()) return false;
  const RowValues values = rowValuesOf(segment, analysis);
  if (values.passes() > 2) return true;
  const IdVector<ValueId, bool> leaves(segment.values().size(), false);
  const std::vector<ValueId> last = computedAlongRow(segment, values, 1, leaves);
  return std::any_of(last.begin(), last.end(), [&](ValueId id) { return values.level[id] > 0; });
}

bool hasUnalignedRows(const Space& space, Target target) {
  constexpr int64_t kShortestRow = 32;  // vectors: one for each thread of a warp
  if (target != Target::Cuda || space.extents.size() < 2) return false;
  const Space rows = withRows(space);
  return isContiguousAlongRow(rows) && rows.keptCount() >= kFewRows &&
         vectorsOf(rows, 1, false).shifted &&
         vectorsPerRow(rows, vectorsOf(rows, 1, false).length) >= kShortestRow;
}

std::vector<RowCandidate> rowCandidates(const Space& space, Target target,
                                        const RowDemand& demand) {
  if (!isContiguousAlongRow(space)) return {};
  return target == Target::Cuda ? cudaCandidates(space, demand) : cpuCandidates(space, demand);
}

RowDemand rowDemand(const Fusion& segment, const Analysis& analysis, const Space& rows,
                    Target target, const std::vector<Accumulator>& columns) {
  const RowValues values = rowValuesOf(segment, analysis);
  RowForm form = keptForm(segment, values, target);
  const RowStatements written = writeRowStatements(segment, analysis, rows, values, form);
  RowDemand demand;
  demand.live_bytes = liveBytes(written.statements, written.tiles);
  demand.loaded_bytes = written.loaded;
  for (const Accumulator& column : columns) demand.live_bytes += sizeOf(column.type);
  for (ValueId id : form.kept) demand.kept_bytes += sizeOf(segment.tensor(id).dtype);
  for (const Body* body : bodiesOf(written.statements)) {
    demand.ops = std::max(demand.ops, opsOf(*body));
  }
  if (target == Target::Cuda && !columns.empty()) {
    form.ahead = true;
    const RowStatements ahead = writeRowStatements(segment, analysis, rows, values, form);
    demand.ahead_bytes = liveBytes(ahead.statements, ahead.tiles) + ahead.loaded;
    for (const Accumulator& column : columns) demand.ahead_bytes += sizeOf(column.type);
  }
  demand.several_passes = needsSeveralPasses(segment, analysis);
  demand.accumulators = static_cast<int64_t>(written.accumulators.size());
  return demand;
}

std::optional<TileProgram> buildRows(const Fusion& segment, const Analysis& analysis,
                                     const Space& given, Target target, const std::string& entry,
                                     const std::vector<Accumulator>& columns) {
  const Space space = withRows(given);
  const RowDemand demand = rowDemand(segment, analysis, space, target, columns);
  const std::vector<RowCandidate> candidates = rowCandidates(space, target, demand);
  if (candidates.empty()) return std::nullopt;
  const RowCandidate& best = candidates.front();
  const RowValues values = rowValuesOf(segment, analysis);
  RowForm form = keptForm(segment, values, target);
  form.ahead = best.ahead;
  if (!best.looped) {
    return assemble(best, writeRowStatements(segment, analysis, space, values, form), space, target,
                    entry, columns);
  }
  form.looped = target == Target::Cuda;
  form.kept.clear();
  Analysis joined = analysis;
  if (form.looped) joined.joint = jointReductions(segment, analysis);
  RowStatements written =
      writeRowStatements(segment, joined, space, rowValuesOf(segment, joined), form);
  return assemble(best, std::move(written), space, target, entry, columns);
}

int64_t partsOf(const RowLayout& layout, Target target, const Space& space) {
  if (target == Target::Cuda) return layout.blocks * layout.rows;
  return ceilDiv(space.keptCount(), cpuTileRows(space));
}

}  // namespace heddle::codegen
