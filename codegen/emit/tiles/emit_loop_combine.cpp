#include "codegen/emit/tiles/emit_loop_combine.h"

#include <algorithm>

#include "codegen/emit/accumulator_text.h"
#include "codegen/emit/tiles/emit_shifted_columns.h"
#include "ir/base/check.h"

namespace heddle::codegen {

int32_t LoopCombiner::states(AccumulatorId a) const {
  const bool inner = s_.kind == ScheduleKind::InnerReduction;
  return inner && addsTogether(accumulator(a)) ? 1 : s_.lanes;
}

void LoopCombiner::declare() {
  for (AccumulatorId a : withState(frame_.accumulators)) {
    const Accumulator& acc = accumulator(a);
    out_.line(fmt::format("{} acc{}[{}];", stateType(acc), a, states(a)));
    if (acc.joint != JointKind::None) continue;
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int i = 0; i < {}; ++i) acc{}[i] = {};", states(a), a,
                          identityText(acc)));
  }
}

void LoopCombiner::rows() {
  for (AccumulatorId a : withState(frame_.accumulators)) {
    lanes(a);
    row(a);
  }
}

// Combines the states of all lanes of this thread into acc[0].
void LoopCombiner::lanes(AccumulatorId a) {
  if (states(a) == 1) return;
  const std::string into = fmt::format("acc{}[0]", a);
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int i = 1; i < {}; ++i) {} = {};", states(a), into,
                        combineText(accumulator(a), into, fmt::format("acc{}[i]", a))));
}

// Combines acc[0] of all threads of a row into acc[0] of the thread with share 0. If the threads
// belong to several warps, the warps exchange their states through shared memory.
void LoopCombiner::row(AccumulatorId a) {
  const Accumulator& acc = accumulator(a);
  const std::string into = fmt::format("acc{}[0]", a);
  writePartners(out_, acc, into, std::min(s_.reduce_threads, 32) / 2, 1);
  const int32_t warps = s_.reduce_threads / 32;
  if (warps <= 1) return;
  out_.line(
      fmt::format("__shared__ hd::SharedBytes<{}> scratch{};", stateBytes(acc) * s_.block / 32, a));
  out_.line(fmt::format("const hd::SharedArray<{}> warp{}(scratch{});", stateType(acc), a, a));
  out_.line(fmt::format("if (share % 32 == 0) warp{}[hd::thread() / 32] = {};", a, into));
  out_.line("hd::barrier();");
  out_.open("if (share == 0) {");
  out_.line(fmt::format("for (int w = 1; w < {}; ++w) {} = {};", warps, into,
                        combineText(acc, into, fmt::format("warp{}[column * {} + w]", a, warps))));
  out_.close();
}

bool LoopCombiner::usesScratch() const {
  return s_.kind == ScheduleKind::OuterReduction && s_.reduce_threads > 1;
}

void LoopCombiner::declareScratch() {
  if (!usesScratch()) return;
  int bytes = 0;
  for (AccumulatorId a : withState(frame_.accumulators)) {
    bytes = std::max(bytes, stateBytes(accumulator(a)));
  }
  out_.line(fmt::format("__shared__ hd::SharedBytes<{}> scratch;", bytes * s_.lanes * s_.block));
}

// All accumulators use the same shared memory, one after another. A barrier separates the last
// access for one accumulator from the first store for the next one.
void LoopCombiner::columns() {
  if (!usesScratch()) return;
  for (AccumulatorId a : withState(frame_.accumulators)) column(a);
}

// Combines acc[lane] of all threads of a column into acc[lane] of the thread with share 0.
void LoopCombiner::column(AccumulatorId a) {
  const Accumulator& acc = accumulator(a);
  const int32_t columns = s_.block / s_.reduce_threads;
  const std::string own = fmt::format("acc{}[i]", a);
  const std::string shared = fmt::format("column{}", a);
  out_.line(fmt::format("const hd::SharedArray<{}> {}(scratch);", stateType(acc), shared));
  const StatePlace place = [&](const char* lane, const std::string& share, const char* column) {
    return fmt::format("{}[{} * {} + ({}) * {} + {}]", shared, lane, s_.block, share, columns,
                       column);
  };
  const auto state = [&](const std::string& share) { return place("i", share, "column"); };
  const auto forLanes = [&](const std::string& statement) {
    out_.line("#pragma unroll");
    out_.line(fmt::format("for (int i = 0; i < {}; ++i) {}", s_.lanes, statement));
  };
  if (s_.shifted) {
    writeMoveToColumns(out_, program_, a, place);
  } else {
    forLanes(fmt::format("{} = {};", state("share"), own));
  }
  out_.line("hd::barrier();");
  if (s_.shifted) {
    out_.open(fmt::format("if ({}) {{", ownsColumns(s_, "")));
    forLanes(fmt::format("{} = {};", own, state("share")));
    out_.close();
  }
  out_.open(fmt::format("for (int half = {}; half > 0; half /= 2) {{", s_.reduce_threads / 2));
  out_.open(fmt::format("if (share < half{}) {{", ownsColumns(s_, " && ")));
  forLanes(fmt::format("{} = {};", own, combineText(acc, own, state("share + half"))));
  forLanes(fmt::format("{} = {};", state("share"), own));
  out_.close();
  out_.line("hd::barrier();");
  out_.close();
}

}  // namespace heddle::codegen
