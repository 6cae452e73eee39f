// Writes the CUDA text of a tile program of items, statement by statement. Each statement loads its
// own tiles.
#include <algorithm>
#include <optional>

#include "codegen/emit/accumulator_text.h"
#include "codegen/emit/emit_joint_values.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/tiles/emit_loop_combine.h"
#include "codegen/emit/tiles/emit_shifted_columns.h"
#include "codegen/emit/windows.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// What the text of a program is: the entry point of a kernel; or a function that the kernel of a
// shared launch calls (emitCudaPart()); or a function for one of the two halves of a kernel
// (emitCudaHalf()).
enum class Form : uint8_t { Entry, Part, Half };

class CudaItemEmitter {
 public:
  CudaItemEmitter(const TileProgram& program, Form form)
      : program_(program),
        frame_(program.frame),
        form_(form),
        s_(*program.items),
        inner_(s_.kind == ScheduleKind::InnerReduction),
        combiner_(out_, program),
        joint_(out_, program) {}

  std::string emit() {
    std::string args = "Args_" + frame_.entry;
    std::string text = frame_.args.structText(args);
    open(args);
    out_.line(fmt::format("typedef {} Index;", frame_.wide_index ? "long long" : "int"));
    writeArguments(out_, frame_);
    if (s_.kind != ScheduleKind::Pointwise) writeThreadRoles();
    for (const Statement& statement : program_.statements) {
      std::visit([this](const auto& one) { this->write(one); }, statement);
    }
    out_.close();
    return text + out_.take();
  }

 private:
  void open(const std::string& args) {
    if (form_ == Form::Entry) {
      openCudaEntry(out_, frame_.entry, std::to_string(s_.block));
      combiner_.declareScratch();
      return;
    }
    std::string more;
    if (form_ == Form::Part) more = ", const long long block, const long long blocks";
    if (form_ == Form::Half && combiner_.usesScratch()) {
      out_.line("template <class Scratch>");
      more = ", Scratch& scratch";
    }
    out_.open(
        fmt::format("__device__ inline void {}(const {}& args{}) {{", frame_.entry, args, more));
  }

  const Access& access(int t) const { return frame_.access(t); }
  const Accumulator& accumulator(AccumulatorId a) const { return frame_.accumulators[a]; }

  const char* alignmentOf(int t) const {
    return s_.lanes == 1 || access(t).aligned_items ? "true" : "false";
  }
  const char* streams(const Access& access) const {
    return s_.streams && access.once ? ", true" : "";
  }

  void declareBuffers(const std::vector<LoadTile>& loads, const char* prefix, int32_t unroll) {
    for (const LoadTile& load : loads) {
      const Access& a = access(load.tensor);
      if (a.lane == LaneStride::Zero) {
        out_.line(fmt::format("{} {}{}[{}][1];", storedType(a.dtype), prefix, load.tensor, unroll));
      } else {
        // A reduction loads the elements of an unaligned vector one by one. On an H200, reductions
        // of 16-bit elements took 0.73 to 0.98 times as long if no two elements share a register.
        const bool is_split = s_.kind != ScheduleKind::Pointwise && a.lane == LaneStride::One &&
                              !a.aligned_items && !s_.shifted;
        out_.line(fmt::format("hd::{}Lanes<{}, {}> {}{}[{}];", is_split ? "Single" : "", s_.lanes,
                              storedType(a.dtype), prefix, load.tensor, unroll));
      }
    }
  }

  std::string lanesLeft() const {
    return s_.exact ? std::to_string(s_.lanes)
                    : fmt::format("(int)hd::smaller<Index>({}, lane_extent - {})", s_.lanes,
                                  frame_.lane_start.str());
  }

  static std::string offsetText(const Access& a, bool reduced) {
    return (reduced ? a.kept_offset + a.reduced_offset : a.kept_offset).str();
  }

  void writeLoads(const std::vector<LoadTile>& loads, const char* prefix, const char* slot,
                  bool reduced) {
    for (const LoadTile& load : loads) {
      const Access& a = access(load.tensor);
      std::string to = fmt::format("{}{}[{}]", prefix, load.tensor, slot);
      std::string from = fmt::format("{} + ({})", a.name, offsetText(a, reduced));
      switch (a.lane) {
        case LaneStride::Zero:
          out_.line(fmt::format("{}[0] = *({});", to, from));
          break;
        case LaneStride::One:
          out_.line(s_.shifted && reduced
                        ? shiftedLoadText(a, s_.lanes, streams(a), to)
                        : fmt::format("hd::load<{}{}>({}, {}, {}, count);", s_.lanes, streams(a),
                                      to, from, alignmentOf(load.tensor)));
          break;
        case LaneStride::Any:
          out_.line(fmt::format("hd::loadStrided<{}>({}, {}, {}, count);", s_.lanes, to, from,
                                a.lane_stride.str()));
          break;
      }
    }
  }

  std::string bufferElement(const char* prefix, const char* slot, int t) const {
    bool still = access(t).lane == LaneStride::Zero;
    return fmt::format("{}{}[{}][{}]", prefix, t, slot, still ? "0" : "lane");
  }

  void declareStores(const Body& body, const char* prefix) {
    for (const Store& store : body.stores) {
      const std::string_view type =
          roundsWhenStored(body, store, frame_) ? "float" : storedType(access(store.tensor).dtype);
      out_.line(fmt::format("{} {}{}[{}];", type, prefix, store.tensor, s_.lanes));
    }
  }

  void assignStores(const Body& body, const char* prefix) {
    for (const Store& store : body.stores) {
      out_.line(
          fmt::format("out{}[lane] = {};", store.tensor,
                      roundsWhenStored(body, store, frame_)
                          ? exactText(store, prefix)
                          : storedText(body, store.node, access(store.tensor).dtype, prefix)));
    }
  }

  void writeStores(const Body& body, bool reduced) {
    for (const Store& store : body.stores) {
      writeStore(store.tensor, "out", reduced, roundsWhenStored(body, store, frame_));
    }
  }

  void writeStore(int t, const char* prefix, bool reduced, bool rounds) {
    const Access& a = access(t);
    std::string to = fmt::format("{} + ({})", a.name, offsetText(a, reduced));
    std::string from = fmt::format("{}{}", prefix, t);
    switch (a.lane) {
      case LaneStride::Zero:
        out_.line(fmt::format("*({}) = {}[0];", to, from));
        break;
      case LaneStride::One:
        out_.line(fmt::format("hd::store{}<{}>({}, {}, {}, count);", rounds ? "Rounded" : "",
                              s_.lanes, to, from, alignmentOf(t)));
        break;
      case LaneStride::Any:
        out_.line(fmt::format("hd::storeStrided<{}>({}, {}, {}, count);", s_.lanes, to, from,
                              a.lane_stride.str()));
        break;
    }
  }

  void openUnrolled(const char* index, int32_t count) {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", index, count));
  }

  LeafText loopLeaves(const std::vector<LoadTile>& loads, const char* slot) const {
    LeafText leaves;
    leaves.element = [this, slot, &loads](int tile) {
      return bufferElement("in", slot, tensorOf(loads, tile));
    };
    leaves.lane = "lane";
    return leaves;
  }

  // Writes the loop over all lanes of item `slot`. The loop writes outputs to the arrays `out`. It
  // combines elements with the accumulators, or collects them in the arrays `values` (JointValues).
  void writeLoopLanes(const Body& body, const std::vector<LoadTile>& loads, const char* slot) {
    declareStores(body, "out");
    LeafText leaves = loopLeaves(loads, slot);
    writeLaneStates(out_, body, "v", frame_, leaves, s_.lanes);
    openUnrolled("lane", s_.lanes);
    if (!s_.exact && !s_.shifted) out_.line("if (lane >= count) break;");
    leaves.window = [&](NodeId node) { return windows_->nameOf(node, slot); };
    leaves.rounds_at_stores = true;
    writeNodes(out_, body, frame_, leaves, "v", &windows_->perLane());
    assignStores(body, "v");
    for (AccumulatorId a : withState(frame_.accumulators)) {
      const Accumulator& acc = accumulator(a);
      const std::string into = fmt::format("acc{}[lane]", a);
      out_.line(addsTogether(acc)
                    ? fmt::format("{} = {};", joint_.entry(a, slot), elementText(body, acc, "v"))
                    : fmt::format("{} = {};", into, accumulateText(body, acc, "v", into)));
    }
    out_.close();
  }

  void write(const MapTiles& map) {
    if (map.per_row) {
      writeFinish(map);
    } else {
      writePointwise(map.body, map.loads);
    }
  }

  void writePointwise(const Body& body, const std::vector<LoadTile>& loads) {
    windows_.emplace(body, loads, frame_.accumulators, frame_, s_.lanes);
    int64_t step = int64_t{s_.block} * s_.unroll;
    out_.open(
        fmt::format("for (Index first = (Index){1} * {0} + hd::thread(); first < kept_items; "
                    "first += (Index){2} * {0}) {{",
                    step, form_ == Form::Part ? "block" : "hd::block()",
                    form_ == Form::Part ? "blocks" : "hd::blocks()"));
    // In each step of the loop, a thread loads the vectors of all its items before it stores the
    // first result. The compiler could not move a load before a store, because both might access
    // the same address.
    declareBuffers(loads, "in", s_.unroll);
    windows_->declare(out_, s_.unroll);
    auto openItem = [&] {
      openUnrolled("u", s_.unroll);
      out_.line(fmt::format("const Index kept = first + u * {};", s_.block));
      out_.open("if (kept < kept_items) {");
      writeCoordinates(out_, frame_.kept);
      out_.line(fmt::format("[[maybe_unused]] const int count = {};", lanesLeft()));
    };
    openItem();
    writeLoads(loads, "in", "u", false);
    windows_->load(out_, loopLeaves(loads, "u"), "u");
    out_.close();
    out_.close();
    openItem();
    writeLoopLanes(body, loads, "u");
    writeStores(body, false);
    out_.close();
    out_.close();
    out_.close();
  }

  // Writes the variables that say for which kept item this thread reduces elements (`kept`), and
  // which share of the reduced items belongs to the thread (`share`).
  void writeThreadRoles() {
    int32_t columns = s_.block / s_.reduce_threads;
    if (inner_) {
      out_.line(fmt::format("const int share = hd::thread() % {};", s_.reduce_threads));
      out_.line(fmt::format("const int column = hd::thread() / {};", s_.reduce_threads));
    } else {
      out_.line(fmt::format("const int column = hd::thread() % {};", columns));
      out_.line(fmt::format("const int share = hd::thread() / {};", columns));
    }
    out_.line(
        fmt::format("const Index kept = (Index)hd::block() * {} + column;", s_.columnsOfBlock()));
    out_.line(fmt::format("const bool active = {};", reducesColumn(s_)));
    // Only a program that stores partial results divides the reduced items into ranges.
    const bool stores_states = std::ranges::any_of(program_.statements, [](const Statement& one) {
      return std::holds_alternative<StoreStates>(one);
    });
    out_.line(fmt::format("const Index split = {};", stores_states ? "hd::blockRow()" : "0"));
    writeCoordinates(out_, frame_.kept);
    out_.line("const Index range_begin = split * span;");
    out_.line("const Index range_end = hd::smaller<Index>(range_begin + span, reduced_items);");
    if (s_.shifted) writeShift(out_, program_);
  }

  int32_t keptLanes() const { return inner_ ? 1 : s_.lanes; }

  // Writes the loop over the reduced items of a thread. Each step loads all its items before it
  // computes the first one, so that the loads are in flight together.
  void write(const ReduceTiles& reduce) {
    const Body& body = reduce.body;
    const std::vector<LoadTile>& loads = reduce.loads;
    windows_.emplace(body, loads, frame_.accumulators, frame_, s_.lanes);
    combiner_.declare();
    out_.open("if (active) {");
    if (s_.shifted) writeShiftedLanes(out_, program_);
    if (!inner_ && !s_.shifted) {
      out_.line(fmt::format("[[maybe_unused]] const int count = {};", lanesLeft()));
    }
    out_.open(
        fmt::format("for (Index first = range_begin + share; first < range_end; first += {}) {{",
                    int64_t{s_.reduce_threads} * s_.unroll));
    declareBuffers(loads, "in", s_.unroll);
    windows_->declare(out_, s_.unroll);
    auto openItem = [&] {
      openUnrolled("u", s_.unroll);
      out_.line(fmt::format("const Index reduced = first + u * {};", s_.reduce_threads));
      out_.open("if (reduced < range_end) {");
      writeCoordinates(out_, frame_.reduced);
      if (inner_) out_.line(fmt::format("[[maybe_unused]] const int count = {};", lanesLeft()));
    };
    openItem();
    writeLoads(loads, "in", "u", true);
    windows_->load(out_, loopLeaves(loads, "u"), "u");
    out_.close();
    out_.close();
    joint_.beginStep();
    openItem();
    joint_.beginItem();
    writeLoopLanes(body, loads, "u");
    joint_.endItem();
    writeStores(body, true);
    out_.close();
    out_.close();
    joint_.endStep();
    out_.close();
    out_.close();
  }

  void write(const CombineParts&) { inner_ ? combiner_.rows() : combiner_.columns(); }

  // Opens the block of the threads that hold the final states.
  void openFinish() {
    out_.open(fmt::format("if (active && share == 0{}) {{", ownsColumns(s_, " && ")));
    out_.line(fmt::format("[[maybe_unused]] const int count = {};", inner_ ? "1" : lanesLeft()));
  }

  // Each member of a state has its own tensor.
  void write(const StoreStates& store) {
    openFinish();
    size_t next = 0;
    for (AccumulatorId a : withState(frame_.accumulators)) {
      const Accumulator& acc = accumulator(a);
      for (size_t m = 0; m < memberTypes(acc).size(); ++m) {
        const int tensor = store.tensors[next++];
        const std::string type(valueType(memberTypes(acc)[m]));
        out_.line(fmt::format("{} part{}[{}];", type, tensor, keptLanes()));
        out_.line("#pragma unroll");
        out_.line(fmt::format("for (int i = 0; i < {}; ++i) part{}[i] = {};", keptLanes(), tensor,
                              memberText(acc, fmt::format("acc{}[i]", a), m)));
        writeStore(tensor, "part", false, false);
      }
    }
    out_.close();
  }

  void writeFinish(const MapTiles& map) {
    const Body& body = map.body;
    openFinish();
    declareBuffers(map.loads, "fin", 1);
    writeLoads(map.loads, "fin", "0", false);
    declareStores(body, "out");
    writeStates(out_, body, "w");
    openUnrolled("lane", keptLanes());
    if (!inner_ && !s_.exact) out_.line("if (lane >= count) break;");
    LeafText leaves;
    leaves.element = [&](int tile) { return bufferElement("fin", "0", tensorOf(map.loads, tile)); };
    leaves.result = [](AccumulatorId a) { return fmt::format("acc{}[lane]", a); };
    leaves.lane = "lane";
    leaves.rounds_at_stores = true;
    writeNodes(out_, body, frame_, leaves, "w");
    assignStores(body, "w");
    out_.close();
    writeStores(body, false);
    out_.close();
  }

  // The verifier permits none of these statements in a program of items.
  template <class Other>
  void write(const Other&) {
    HEDDLE_CHECK(false, "a program of items has a statement for rows or squares");
  }

  const TileProgram& program_;
  const KernelFrame& frame_;
  const Form form_;
  const Schedule& s_;
  bool inner_;
  std::optional<Windows> windows_;  // the windows of the current body (codegen/emit/windows.h)
  TextWriter out_;
  LoopCombiner combiner_;
  JointValues joint_;
};

}  // namespace

std::string emitItemsCuda(const TileProgram& program) {
  return CudaItemEmitter(program, Form::Entry).emit();
}

std::string emitCudaHalf(const TileProgram& program) {
  return CudaItemEmitter(program, Form::Half).emit();
}

std::string emitCudaPart(const TileProgram& program) {
  HEDDLE_CHECK(program.items && program.items->kind == ScheduleKind::Pointwise,
               "a part of a shared launch has reductions");
  return CudaItemEmitter(program, Form::Part).emit();
}

}  // namespace heddle::codegen
