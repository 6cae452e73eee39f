// Writes CUDA text of a tile program with rows: reductions, maps, tiles in shared memory, and the
// shift of unaligned rows. The other members of CudaTileEmitter are in cuda_tile_emitter.h,
// emit_bundles_cuda.cpp, emit_columns_cuda.cpp and emit_divided_cuda.cpp.
#include "codegen/emit/tiles/cuda_tile_emitter.h"
#include "codegen/plan/joint.h"
#include "ir/base/check.h"

namespace heddle::codegen {

// Writes the shift of the row (RowLayout::shifted): the number of elements that lie between the
// last aligned address at or before the row and the first element of the row. All vectorized
// accesses use the shift of the first vectorized tensor that changes along a kept axis. If the row
// of another tensor has another shift, the kernel accesses this row element by element.
void CudaTileEmitter::writeShift() {
  std::string shift;
  for (const Access& access : frame_.accesses) {
    const bool has_rows = access.kept_offset.kind() != IndexExpr::Kind::Constant;
    if (!shift.empty() || !has_rows || !isVectorized(access)) continue;
    shift = fmt::format("hd::shiftOf<{}>({} + ({}))", layout_.vector, access.name,
                        access.kept_offset.str());
  }
  out_.line(fmt::format("const int shift = {};", shift.empty() ? "0" : shift));
  for (const Access& access : frame_.accesses) {
    if (!isVectorized(access)) continue;
    out_.line(fmt::format("const bool aligned_{0} = hd::shiftOf<{1}>({0} + ({2})) == shift;",
                          access.name, layout_.vector, access.kept_offset.str()));
  }
  out_.line(fmt::format("const Index vectors = active ? (lane_extent + shift + {}) / {} : 0;",
                        layout_.vector - 1, layout_.vector));
}

// Returns the arguments of __launch_bounds__. The grid of a program with columns assumes that
// `column_threads` threads run on each multiprocessor at the same time. The second argument makes
// the compiler use few enough registers for this. For divided rows, kDividedThreads replaces
// `column_threads`.
std::string CudaTileEmitter::launchBounds() const {
  const int32_t block = layout_.blockThreads();
  if (isDivided()) return fmt::format("{}, {}", block, kDividedThreads / block);
  if (program_.columns.empty()) return std::to_string(block);
  return fmt::format("{}, {}", block, layout_.column_threads / block);
}

// The blocks of a cluster have consecutive numbers. All of them must have started before one of
// them stores a state in the shared memory of another one, so each says here that it has started.
void CudaTileEmitter::arriveInCluster() {
  out_.line("hd::arriveInCluster();");
  out_.line(fmt::format("const int rank = (int)(hd::block() % {});", layout_.cluster));
}

void CudaTileEmitter::writeClusterRoles() {
  const int32_t cluster = layout_.cluster;
  arriveInCluster();
  out_.line(fmt::format("const int share = hd::thread() + rank * {};", layout_.blockThreads()));
  out_.line("[[maybe_unused]] const int row = 0;");
  out_.line(fmt::format("const Index kept = (Index)(hd::block() / {});", cluster));
  out_.line("const bool active = true;");
  out_.line("const Index row_end = reduced_items;");
  writeCoordinates(out_, frame_.kept);
}

void CudaTileEmitter::writeRoles() {
  if (layout_.bundled) return writeBundleRoles();
  if (layout_.cluster > 1) return writeClusterRoles();
  out_.line(fmt::format("[[maybe_unused]] const int share = hd::thread() % {};", layout_.threads));
  out_.line(fmt::format("[[maybe_unused]] const int row = hd::thread() / {};", layout_.threads));
  if (!program_.columns.empty()) return openColumns();
  out_.line(fmt::format("const Index kept = (Index)hd::block() * {} + row;", layout_.rows));
  // If a block computes one row, the grid has one block per row, so the row exists. If one warp
  // computes a row, the kernel has no barriers. The warp may then end if its row does not exist.
  if (layout_.threads == 32 && layout_.rows > 1) out_.line("if (kept >= kept_items) return;");
  const bool exists = layout_.rows == 1 || layout_.threads == 32;
  out_.line(exists ? "const bool active = true;" : "const bool active = kept < kept_items;");
  out_.line("const Index row_end = active ? reduced_items : 0;");
  writeCoordinates(out_, frame_.kept);
}

// Writes text that loads the tile into shared memory.
void CudaTileEmitter::hold(const LoadTile& load) {
  const Access& access = frame_.access(load.tensor);
  out_.line(fmt::format("const hd::SharedArray<hd::HeldLanes<{}, {}>> held{}({});", layout_.vector,
                        storedType(access.dtype), load.tile, held_bytes_));
  held_bytes_ +=
      int64_t{layout_.blockThreads()} * layout_.registers * layout_.vector * sizeOf(access.dtype);
  loadBundle(load, [&] {
    out_.line(fmt::format("hd::holdPart<{}>(held{}, {}, {} + ({}), {}, {}, count);", layout_.vector,
                          load.tile, heldIndex(), access.name,
                          (access.kept_offset + access.reduced_offset).str(), alignmentOf(access),
                          layout_.shifted ? "first" : "0"));
  });
  held_.insert(load.tile);
  is_copying_ = true;
}

std::set<TileId> CudaTileEmitter::heldTilesOf(const Body& body) const {
  std::set<TileId> found;
  for (const Node& node : body.nodes) {
    const bool reads = node.kind == Node::Kind::Load && held_.contains(TileId(node.index));
    if (reads) found.insert(TileId(node.index));
  }
  return found;
}

LeafText CudaTileEmitter::leaves() const {
  LeafText leaves;
  leaves.element = [this](int index) {
    const TileId id(index);
    const bool per_row = tile(id).per_row;
    if (per_row && !layout_.bundled) return fmt::format("tile{}", id);
    return fmt::format("tile{}[{}][{}]", id, per_row || one_vector_.contains(id) ? "0" : "u",
                       one_lane_.contains(id) ? "0" : "lane");
  };
  leaves.result = [this](AccumulatorId a) {
    return fmt::format("acc{}[{}]", a, layout_.bundled ? "lane" : "0");
  };
  leaves.is_one_for_lanes = [this](int index) {
    const TileId id(index);
    return (tile(id).per_row && !layout_.bundled) || one_lane_.contains(id);
  };
  leaves.lane = "lane";
  leaves.rounds_at_stores = true;
  return leaves;
}

void CudaTileEmitter::declareAccumulators(const ReduceTiles& reduce) {
  for (AccumulatorId a : reduce.accumulators) {
    const Accumulator& acc = accumulator(a);
    const int32_t parts = lanePartsOf(acc, layout_);
    out_.line(fmt::format("{} acc{}[{}];", stateType(acc), a, parts));
    if (acc.joint != JointKind::None) continue;
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int i = 0; i < {}; ++i) acc{}[i] = {};", parts, a, identityText(acc)));
  }
}

void CudaTileEmitter::write(const ReduceTiles& reduce) {
  if (!in_loop_) declareAccumulators(reduce);
  const bool joint = std::any_of(reduce.accumulators.begin(), reduce.accumulators.end(),
                                 [this](AccumulatorId a) { return addsTogether(accumulator(a)); });
  const bool together = in_loop_ && (joint || isDivided());
  if (together) loadTogether(reduce.loads);
  writeVectors(together ? std::vector<LoadTile>{} : reduce.loads, reduce.body,
               [&] { reduceLanes(reduce); });
}

// Writes the loop over the lanes of a vector. The loop collects the elements of joint reductions in
// an array, because hd::addSome() adds all of them in one call.
void CudaTileEmitter::reduceLanes(const ReduceTiles& reduce) {
  const std::string prefix = nextPrefix();
  const bool some = !layout_.exact;
  const auto neutral = [this](AccumulatorId a) { return jointText(accumulator(a).joint).neutral; };
  writeLaneStates(out_, reduce.body, prefix, frame_, leaves(), lanesInOrder());
  for (AccumulatorId a : reduce.accumulators) {
    if (!addsTogether(accumulator(a))) continue;
    out_.line(fmt::format("float values{}[{}];", a, layout_.vector));
    if (some && !neutral(a).empty()) {
      out_.line("#pragma unroll");
      out_.line(fmt::format("for (int i = 0; i < {}; ++i) values{}[i] = {};", layout_.vector, a,
                            neutral(a)));
    }
  }
  // The loop over a bundle needs no mask unless the body reads memory at computed indices: no store
  // reads the accumulators of lanes outside of the tensor.
  openLanes(!layout_.bundled || readsMemory(reduce.body));
  writeNodes(out_, reduce.body, frame_, leaves(), prefix);
  for (AccumulatorId a : reduce.accumulators) {
    const Accumulator& acc = accumulator(a);
    const int32_t parts = lanePartsOf(acc, layout_);
    const std::string into = parts == layout_.vector ? fmt::format("acc{}[lane]", a)
                                                     : fmt::format("acc{}[lane % {}]", a, parts);
    out_.line(addsTogether(acc)
                  ? fmt::format("values{}[lane] = {};", a, elementText(reduce.body, acc, prefix))
                  : fmt::format("{} = {};", into, accumulateText(reduce.body, acc, prefix, into)));
  }
  out_.close();
  for (AccumulatorId a : reduce.accumulators) {
    if (!addsTogether(accumulator(a))) continue;
    out_.line(some && neutral(a).empty()
                  ? fmt::format("hd::addSome(acc{0}[0], values{0}, {1}, count);", a,
                                layout_.shifted ? "first" : "0")
                  : fmt::format("hd::addSome(acc{0}[0], values{0}, 0, {1});", a, layout_.vector));
  }
}

void CudaTileEmitter::write(const LoopOverRow& loop) {
  for (const Statement& statement : loop.statements) {
    // Only a ReduceTiles adds to accumulators.
    if (const auto* reduce = std::get_if<ReduceTiles>(&statement)) declareAccumulators(*reduce);
  }
  const char* end = isDivided() ? "row_end" : layout_.shifted ? "vectors" : "reduced_items";
  const int64_t step = int64_t{layout_.threads} * layout_.registers;
  // The blocks of a row process its parts in turn.
  const bool are_several = layout_.row_blocks > 1;
  const std::string begin = isDivided()   ? std::string("row_begin")
                            : are_several ? fmt::format("(Index)hd::blockRow() * {}", step)
                                          : std::string("0");
  out_.open(fmt::format("for (Index part = {}; part < {}; part += {}{}) {{", begin, end,
                        are_several ? "(Index)hd::blockRows() * " : "", step));
  in_loop_ = true;
  for (const Statement& statement : loop.statements) write(statement);
  in_loop_ = false;
  out_.close();
}

void CudaTileEmitter::writeRowMap(const MapTiles& map) {
  if (layout_.bundled) return writeBundleMap(map);
  const std::string prefix = nextPrefix();
  for (const MapTiles::Result& result : map.results) {
    out_.line(fmt::format("{} tile{} = {{}};", storedType(tile(result.tile).dtype), result.tile));
  }
  out_.open(map.body.stores.empty() ? "if (active) {"
            : isDivided()           ? "if (is_last) {"
                                    : "if (active && share == 0) {");
  writeStates(out_, map.body, prefix);
  writeNodes(out_, map.body, frame_, leaves(), prefix);
  for (const MapTiles::Result& result : map.results) {
    out_.line(fmt::format("tile{} = {};", result.tile,
                          storedText(map.body, result.node, tile(result.tile).dtype, prefix)));
  }
  for (const Store& store : map.body.stores) {
    const Access& access = frame_.access(store.tensor);
    out_.line(fmt::format("{}[{}] = {};", access.name, access.kept_offset.str(),
                          storedText(map.body, store.node, access.dtype, prefix)));
  }
  out_.close();
}

// Writes a loop over the vectors of a thread, and in it a loop over lanes. The loop over lanes
// collects their results in an array `out`, so that one instruction can store the vector. If rows
// are divided, all loads precede the first store. A thread then begins several loads before it
// waits for the first one.
void CudaTileEmitter::writeElementMap(const MapTiles& map) {
  for (const MapTiles::Result& result : map.results) declareTile(result.tile, layout_.registers);
  if (!isDivided()) return writeVectors(map.loads, map.body, [&] { mapLanes(map); });
  loadTogether(map.loads);
  writeVectors({}, map.body, [&] { mapLanes(map); });
}

void CudaTileEmitter::mapLanes(const MapTiles& map) {
  const std::string prefix = nextPrefix();
  const bool adds = std::any_of(map.body.stores.begin(), map.body.stores.end(),
                                [this](const Store& s) { return columnOf(s.tensor); });
  for (const Store& store : map.body.stores) {
    if (columnOf(store.tensor) != nullptr) continue;
    const std::string_view type = roundsWhenStored(map.body, store, frame_)
                                      ? "float"
                                      : storedType(frame_.access(store.tensor).dtype);
    out_.line(fmt::format("{} out{}[{}];", type, store.tensor, layout_.vector));
  }
  writeLaneStates(out_, map.body, prefix, frame_, leaves(), lanesInOrder());
  openLanes(adds || readsMemory(map.body));
  writeNodes(out_, map.body, frame_, leaves(), prefix);
  for (const MapTiles::Result& result : map.results) {
    out_.line(fmt::format("tile{}[u][lane] = {};", result.tile,
                          storedText(map.body, result.node, tile(result.tile).dtype, prefix)));
  }
  for (const Store& store : map.body.stores) {
    const DType dtype = frame_.access(store.tensor).dtype;
    if (const ColumnSums* column = columnOf(store.tensor)) {
      Accumulator acc = column->accumulator;
      acc.element = store.node;
      const std::string into = fmt::format("sums{}[u][lane]", store.tensor);
      out_.line(fmt::format("{} = {};", into, accumulateText(map.body, acc, prefix, into)));
      continue;
    }
    out_.line(fmt::format("out{}[lane] = {};", store.tensor,
                          roundsWhenStored(map.body, store, frame_)
                              ? exactText(store, prefix)
                              : storedText(map.body, store.node, dtype, prefix)));
  }
  out_.close();
  for (const Store& store : map.body.stores) {
    if (columnOf(store.tensor) != nullptr) continue;
    writeStore(store.tensor, roundsWhenStored(map.body, store, frame_));
  }
}

void CudaTileEmitter::writeStore(int tensor, bool rounds) {
  const Access& access = frame_.access(tensor);
  const std::string to =
      fmt::format("{} + ({})", access.name, (access.kept_offset + access.reduced_offset).str());
  switch (access.lane) {
    case LaneStride::Zero:
      out_.line(fmt::format("*({}) = out{}[0];", to, tensor));
      break;
    case LaneStride::One:
      out_.line(fmt::format("hd::store{}{}<{}{}>({}, out{}, {}, {});", rounds ? "Rounded" : "",
                            part(), layout_.vector, streamsLastSweep() ? ", true" : "", to, tensor,
                            alignmentOf(access), elements()));
      break;
    case LaneStride::Any:
      out_.line(fmt::format("hd::storeStrided<{}>({}, out{}, {}, count);", layout_.vector, to,
                            tensor, access.lane_stride.str()));
      break;
  }
}

std::string emitCuda(const TileProgram& program) {
  if (program.items) return emitItemsCuda(program);
  return program.square ? emitSquaresCuda(program) : CudaTileEmitter(program).emit();
}

}  // namespace heddle::codegen
