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

class CppEmitter {
 public:
  explicit CppEmitter(const LoopNest& nest) : nest_(nest), lanes_(nest.schedule.lanes) {}

  std::string emit() {
    std::string text = libmText({&computation().loop, &computation().finish}) +
                       nest_.args.structText("Args_" + nest_.entry);
    openCppEntry(out_, nest_);
    bool reduces = !nest_.reduced.empty();
    out_.line(
        fmt::format("const Index work_end = hd::smaller(tile_end * items_per_tile, kept_items{});",
                    reduces ? " * splits" : ""));
    out_.open("for (Index work = tile_begin * items_per_tile; work < work_end; ++work) {");
    out_.line(fmt::format("const Index kept = work{};", reduces ? " / splits" : ""));
    if (reduces) out_.line("const Index split = work % splits;");
    writeCoordinates(out_, nest_.kept);
    switch (nest_.schedule.kind) {
      case ScheduleKind::Pointwise:
        emitPointwise();
        break;
      case ScheduleKind::InnerReduction:
        emitInner();
        break;
      case ScheduleKind::OuterReduction:
        emitOuter();
        break;
    }
    out_.close();
    if (nest_.schedule.kind == ScheduleKind::Pointwise) finishStreams(out_);
    out_.close();
    return text + out_.take();
  }

 private:
  const Computation& computation() const { return nest_.computation; }

  // Writes, for each tensor in `tensors`, a pointer to lane 0 of the current item.
  void writePointers(const std::vector<int>& tensors, const char* prefix, bool reduced) {
    for (int t : tensors) {
      const Access& access = nest_.access(t);
      IndexExpr offset = access.kept_offset;
      if (reduced) offset = offset + access.reduced_offset;
      out_.line(fmt::format("{}{}* const {}{} = {} + ({});", access.output ? "" : "const ",
                            storedType(access.dtype), prefix, t, access.name, offset.str()));
    }
  }

  std::string element(const char* prefix, int t, const std::string& lane) const {
    const Access& access = nest_.access(t);
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

  // Writes the loop body for lane `i`. The body stores outputs, and combines its elements with
  // entry `slot` of the arrays `part0`, `part1`, ...
  void writeLoopBody(const std::string& slot) {
    LeafText leaves;
    leaves.element = [&](int t) { return element("p", t, "i"); };
    leaves.lane = "i";
    const Body& body = computation().loop;
    writeStates(out_, body, "v");
    writeNodes(out_, body, nest_, leaves, "v");
    for (const Store& store : body.stores) {
      DType dtype = nest_.access(store.tensor).dtype;
      out_.line(fmt::format(
          "{} = {};",
          streamed_ != nullptr ? streamed_->element(store.tensor) : element("p", store.tensor, "i"),
          storedText(body, store.node, dtype, "v")));
    }
    for (AccumulatorId a : computation().accumulators.ids()) {
      const Accumulator& acc = computation().accumulators[a];
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

  void emitPointwise() {
    out_.line(fmt::format("const Index count = hd::smaller(chunk, lane_extent - {});",
                          nest_.lane_start.str()));
    writePointers(tensorsOf(computation().loop), "p", false);
    const StreamedStores streamed(nest_, computation().loop);
    if (!streamed.any()) {
      writeLaneLoop("i", "0", "count");
      writeLoopBody("i");
      out_.close();
      return;
    }
    constexpr int kBlock = StreamedStores::kBlockElements;
    out_.open(fmt::format("for (Index start = 0; start < count; start += {}) {{", kBlock));
    out_.line(fmt::format("const Index end = hd::smaller(start + {}, count);", kBlock));
    streamed.open(out_);
    streamed_ = &streamed;
    writeLaneLoop("i", "start", "end");
    writeLoopBody("i");
    out_.close();
    streamed_ = nullptr;
    streamed.close(out_);
    out_.close();
  }

  void declareAccumulators(const char* name) {
    for (AccumulatorId a : computation().accumulators.ids()) {
      const Accumulator& acc = computation().accumulators[a];
      out_.line(fmt::format("{} {}{}[{}];", valueType(acc.type), name, a, lanes_));
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {}{}[l] = {};", lanes_, name, a,
                            literalText(acc.identity, acc.type)));
    }
  }

  void joinParts() {
    for (AccumulatorId a : computation().accumulators.ids()) {
      const Accumulator& acc = computation().accumulators[a];
      std::string total = fmt::format("total{}[l]", a);
      out_.line(fmt::format("for (int l = 0; l < {}; ++l) {} = {};", lanes_, total,
                            combineText(acc, total, fmt::format("part{}[l]", a))));
    }
  }

  void writeRange() {
    out_.line("const Index first = split * span;");
    out_.line("const Index last = hd::smaller(first + span, reduced_items);");
  }

  void emitOuter() {
    out_.line(fmt::format("const Index count = hd::smaller(chunk, lane_extent - {});",
                          nest_.lane_start.str()));
    writeRange();
    declareAccumulators("total");
    out_.open(fmt::format("for (Index block = first; block < last; block += {}) {{", kBlockItems));
    declareAccumulators("part");
    out_.line(fmt::format("const Index block_end = hd::smaller(block + {}, last);", kBlockItems));
    out_.open("for (Index reduced = block; reduced < block_end; ++reduced) {");
    writeCoordinates(out_, nest_.reduced);
    writePointers(tensorsOf(computation().loop), "p", true);
    writeLaneLoop("i", "0", "count");
    writeLoopBody("i");
    out_.close();
    out_.close();
    joinParts();
    out_.close();
    writeFinishPointers();
    writeLaneLoop("i", "0", "count");
    writeFinish("i");
    out_.close();
  }

  // Writes text that reduces each item into the arrays `part`, and then combines `part` with the
  // arrays `total`, so that rounding errors grow slowly (see kBlockItems). GCC vectorizes the first
  // loop over an item. The second loop handles the remaining elements.
  void emitInner() {
    writeRange();
    declareAccumulators("total");
    out_.open("for (Index reduced = first; reduced < last; ++reduced) {");
    writeCoordinates(out_, nest_.reduced);
    out_.line(fmt::format("const Index count = hd::smaller(chunk, lane_extent - {});",
                          nest_.lane_start.str()));
    writePointers(tensorsOf(computation().loop), "p", true);
    declareAccumulators("part");
    out_.line("Index start = 0;");
    out_.open(fmt::format("for (; start + {0} <= count; start += {0}) {{", lanes_));
    writeLanePragma(out_, computation().accumulators, lanes_);
    writeLaneLoop("l", "0", std::to_string(lanes_));
    out_.line("const Index i = start + l;");
    writeLoopBody("l");
    out_.close();
    out_.close();
    out_.open("for (Index l = 0; start + l < count; ++l) {");
    out_.line("const Index i = start + l;");
    writeLoopBody("l");
    out_.close();
    joinParts();
    out_.close();
    for (AccumulatorId a : computation().accumulators.ids()) {
      std::string lower = fmt::format("total{}[l]", a);
      std::string combined =
          combineText(computation().accumulators[a], lower, fmt::format("total{}[l + half]", a));
      out_.line(fmt::format("for (int half = {}; half > 0; half /= 2)", lanes_ / 2));
      out_.line(fmt::format("  for (int l = 0; l < half; ++l) {} = {};", lower, combined));
    }
    writeFinishPointers();
    writeFinish("0");
  }

  void writeFinishPointers() {
    writePointers(nest_.partials.empty() ? tensorsOf(computation().finish) : nest_.partials, "f",
                  false);
  }

  void writeFinish(const std::string& slot) {
    if (!nest_.partials.empty()) {
      for (size_t a = 0; a < nest_.partials.size(); ++a) {
        out_.line(fmt::format("{} = total{}[{}];", element("f", nest_.partials[a], slot), a, slot));
      }
      return;
    }
    LeafText leaves;
    leaves.element = [&](int t) { return element("f", t, slot); };
    leaves.result = [&](AccumulatorId a) { return fmt::format("total{}[{}]", a, slot); };
    leaves.lane = slot;
    const Body& body = computation().finish;
    writeStates(out_, body, "w");
    writeNodes(out_, body, nest_, leaves, "w");
    for (const Store& store : body.stores) {
      DType dtype = nest_.access(store.tensor).dtype;
      out_.line(fmt::format("{} = {};", element("f", store.tensor, slot),
                            storedText(body, store.node, dtype, "w")));
    }
  }

  const LoopNest& nest_;
  int32_t lanes_;
  const StreamedStores* streamed_ = nullptr;  // nullptr: the current loop has no streamed stores
  TextWriter out_;
};

}  // namespace

std::string emitCpp(const LoopNest& nest) { return CppEmitter(nest).emit(); }

}  // namespace heddle::codegen
