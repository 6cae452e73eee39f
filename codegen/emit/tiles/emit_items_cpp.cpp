// Writes the C++ text of a tile program of items, statement by statement. Each statement loads its
// own tiles.
#include "codegen/emit/accumulator_text.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/libm_text.h"
#include "codegen/emit/streamed_stores.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// The number of reduced items in a block of an outer reduction. The kernel sums each block
// separately, and adds this sum to the total. The rounding error of a long f32 sum then grows with
// the number of blocks plus the length of a block. Without blocks, it would grow with the product
// of both.
constexpr int kBlockItems = 64;

class CppItemEmitter {
 public:
  explicit CppItemEmitter(const TileProgram& program)
      : program_(program),
        frame_(program.frame),
        kind_(program.items->kind),
        lanes_(program.items->lanes) {}

  std::string emit() {
    openCppEntry(out_, frame_);
    bool reduces = !frame_.reduced.empty();
    out_.line(
        fmt::format("const Index work_end = hd::smaller(tile_end * items_per_tile, kept_items{});",
                    reduces ? " * splits" : ""));
    out_.open("for (Index work = tile_begin * items_per_tile; work < work_end; ++work) {");
    out_.line(fmt::format("const Index kept = work{};", reduces ? " / splits" : ""));
    if (reduces) out_.line("const Index split = work % splits;");
    writeCoordinates(out_, frame_.kept);
    for (const Statement& statement : program_.statements) {
      std::visit([this](const auto& one) { this->write(one); }, statement);
    }
    out_.close();
    if (kind_ == ScheduleKind::Pointwise) finishStreams(out_);
    out_.close();
    return libmText(bodies_) + frame_.args.structText("Args_" + frame_.entry) + out_.take();
  }

 private:
  // Writes, for each tensor in `tensors`, a pointer to lane 0 of the current item.
  void writePointers(const std::vector<int>& tensors, const char* prefix, bool reduced) {
    for (int t : tensors) {
      const Access& access = frame_.access(t);
      IndexExpr offset = access.kept_offset;
      if (reduced) offset = offset + access.reduced_offset;
      out_.line(fmt::format("{}{}* const {}{} = {} + ({});", access.output ? "" : "const ",
                            storedType(access.dtype), prefix, t, access.name, offset.str()));
    }
  }

  std::string element(const char* prefix, int t, const std::string& lane) const {
    const Access& access = frame_.access(t);
    switch (access.lane) {
      case LaneStride::Zero:
        return fmt::format("{}{}[0]", prefix, t);
      case LaneStride::One:
        return fmt::format("{}{}[{}]", prefix, t, lane);
      case LaneStride::Any:
        return fmt::format("{}{}[{} * {}]", prefix, t, lane, access.lane_stride.str());
    }
    return {};
  }

  // Writes a body for lane `i`. The body stores outputs, and combines its elements with entry
  // `slot` of the arrays `part0`, `part1`, ...
  void writeLoopBody(const Body& body, const std::vector<LoadTile>& loads,
                     const std::string& slot) {
    LeafText leaves;
    leaves.element = [&](int tile) { return element("p", tensorOf(loads, tile), "i"); };
    leaves.lane = "i";
    writeStates(out_, body, "v");
    writeNodes(out_, body, frame_, leaves, "v");
    for (const Store& store : body.stores) {
      DType dtype = frame_.access(store.tensor).dtype;
      out_.line(fmt::format(
          "{} = {};",
          streamed_ != nullptr ? streamed_->element(store.tensor) : element("p", store.tensor, "i"),
          storedText(body, store.node, dtype, "v")));
    }
    for (AccumulatorId a : frame_.accumulators.ids()) {
      const Accumulator& acc = frame_.accumulators[a];
      std::string part = fmt::format("part{}[{}]", a, slot);
      out_.line(fmt::format("{} = {};", part, combineText(acc, part, elementText(body, acc, "v"))));
    }
  }

  void writeLaneLoop(const char* index, const char* begin, const std::string& limit) {
    // The loop has no dependences between lanes: no two lanes write the same element, and if an
    // element is updated in place, only the lane that writes the element reads it.
    out_.line("#pragma GCC ivdep");
    out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; ++{0}) {{", index, begin, limit));
  }

  void writeCount() {
    out_.line(fmt::format("const Index count = hd::smaller(chunk, lane_extent - {});",
                          frame_.lane_start.str()));
  }

  void write(const MapTiles& map) {
    bodies_.push_back(&map.body);
    if (map.per_row) {
      writeFinish(map);
    } else {
      writePointwise(map.body, map.loads);
    }
  }

  void writePointwise(const Body& body, const std::vector<LoadTile>& loads) {
    writeCount();
    writePointers(tensorsOf(body, loads), "p", false);
    const StreamedStores streamed(frame_, body);
    if (!streamed.any()) {
      writeLaneLoop("i", "0", "count");
      writeLoopBody(body, loads, "i");
      out_.close();
      return;
    }
    constexpr int kBlock = StreamedStores::kBlockElements;
    out_.open(fmt::format("for (Index start = 0; start < count; start += {}) {{", kBlock));
    out_.line(fmt::format("const Index end = hd::smaller(start + {}, count);", kBlock));
    streamed.open(out_);
    streamed_ = &streamed;
    writeLaneLoop("i", "start", "end");
    writeLoopBody(body, loads, "i");
    out_.close();
    streamed_ = nullptr;
    streamed.close(out_);
    out_.close();
  }

  void declareAccumulators(const char* name) {
    for (AccumulatorId a : frame_.accumulators.ids()) {
      const Accumulator& acc = frame_.accumulators[a];
      out_.line(fmt::format("{} {}{}[{}];", valueType(acc.type), name, a, lanes_));
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {}{}[l] = {};", lanes_, name, a,
                            literalText(acc.identity, acc.type)));
    }
  }

  void joinParts() {
    for (AccumulatorId a : frame_.accumulators.ids()) {
      const Accumulator& acc = frame_.accumulators[a];
      std::string total = fmt::format("total{}[l]", a);
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {} = {};", lanes_, total,
                            combineText(acc, total, fmt::format("part{}[l]", a))));
    }
  }

  void writeRange() {
    out_.line("const Index first = split * span;");
    out_.line("const Index last = hd::smaller(first + span, reduced_items);");
  }

  void write(const ReduceTiles& reduce) {
    bodies_.push_back(&reduce.body);
    if (kind_ == ScheduleKind::InnerReduction) {
      writeInner(reduce.body, reduce.loads);
    } else {
      writeOuter(reduce.body, reduce.loads);
    }
  }

  void writeOuter(const Body& body, const std::vector<LoadTile>& loads) {
    writeCount();
    writeRange();
    declareAccumulators("total");
    out_.open(fmt::format("for (Index block = first; block < last; block += {}) {{", kBlockItems));
    declareAccumulators("part");
    out_.line(fmt::format("const Index block_end = hd::smaller(block + {}, last);", kBlockItems));
    out_.open("for (Index reduced = block; reduced < block_end; ++reduced) {");
    writeCoordinates(out_, frame_.reduced);
    writePointers(tensorsOf(body, loads), "p", true);
    writeLaneLoop("i", "0", "count");
    writeLoopBody(body, loads, "i");
    out_.close();
    out_.close();
    joinParts();
    out_.close();
  }

  // Writes text that reduces each item into the arrays `part`, and then combines `part` with the
  // arrays `total`, so that rounding errors grow slowly (see kBlockItems). GCC vectorizes the first
  // loop over an item. The second loop handles the remaining elements.
  void writeInner(const Body& body, const std::vector<LoadTile>& loads) {
    writeRange();
    declareAccumulators("total");
    out_.open("for (Index reduced = first; reduced < last; ++reduced) {");
    writeCoordinates(out_, frame_.reduced);
    writeCount();
    writePointers(tensorsOf(body, loads), "p", true);
    declareAccumulators("part");
    out_.line("Index start = 0;");
    out_.open(fmt::format("for (; start + {0} <= count; start += {0}) {{", lanes_));
    writeLanePragma(out_, frame_.accumulators, lanes_);
    writeLaneLoop("l", "0", std::to_string(lanes_));
    out_.line("const Index i = start + l;");
    writeLoopBody(body, loads, "l");
    out_.close();
    out_.close();
    out_.open("for (Index l = 0; start + l < count; ++l) {");
    out_.line("const Index i = start + l;");
    writeLoopBody(body, loads, "l");
    out_.close();
    joinParts();
    out_.close();
  }

  // An outer reduction has a separate result per lane, so it combines nothing.
  void write(const CombineParts& combine) {
    if (kind_ == ScheduleKind::OuterReduction) return;
    for (AccumulatorId a : combine.accumulators) {
      std::string lower = fmt::format("total{}[l]", a);
      std::string combined =
          combineText(frame_.accumulators[a], lower, fmt::format("total{}[l + half]", a));
      out_.line(fmt::format("for (int half = {}; half > 0; half /= 2)", lanes_ / 2));
      out_.line(fmt::format("  for (int l = 0; l < half; ++l) {} = {};", lower, combined));
    }
  }

  // Opens the loop over the results of an outer reduction. An inner reduction has one result.
  // Returns the expression of the lane of a result.
  std::string openFinish(const std::vector<int>& tensors) {
    writePointers(tensors, "f", false);
    if (kind_ == ScheduleKind::InnerReduction) return "0";
    writeLaneLoop("i", "0", "count");
    return "i";
  }
  void closeFinish() {
    if (kind_ == ScheduleKind::OuterReduction) out_.close();
  }

  // The states of C++ kernels have one member.
  void write(const StoreStates& store) {
    const std::string slot = openFinish(store.tensors);
    for (size_t a = 0; a < store.tensors.size(); ++a) {
      out_.line(fmt::format("{} = total{}[{}];", element("f", store.tensors[a], slot), a, slot));
    }
    closeFinish();
  }

  void writeFinish(const MapTiles& map) {
    const Body& body = map.body;
    const std::string slot = openFinish(tensorsOf(body, map.loads));
    LeafText leaves;
    leaves.element = [&](int tile) { return element("f", tensorOf(map.loads, tile), slot); };
    leaves.result = [&](AccumulatorId a) { return fmt::format("total{}[{}]", a, slot); };
    leaves.lane = slot;
    writeStates(out_, body, "w");
    writeNodes(out_, body, frame_, leaves, "w");
    for (const Store& store : body.stores) {
      DType dtype = frame_.access(store.tensor).dtype;
      out_.line(fmt::format("{} = {};", element("f", store.tensor, slot),
                            storedText(body, store.node, dtype, "w")));
    }
    closeFinish();
  }

  // The verifier permits none of these statements in a program of items.
  template <class Other>
  void write(const Other&) {
    HEDDLE_CHECK(false, "a program of items has a statement for rows or squares");
  }

  const TileProgram& program_;
  const KernelFrame& frame_;
  const ScheduleKind kind_;
  const int32_t lanes_;
  std::vector<const Body*> bodies_;
  const StreamedStores* streamed_ = nullptr;  // nullptr: the current loop has no streamed stores
  TextWriter out_;
};

}  // namespace

std::string emitItemsCpp(const TileProgram& program) { return CppItemEmitter(program).emit(); }

}  // namespace heddle::codegen
