#include "codegen/emit/tiles/emit_row_combine.h"

#include <algorithm>

#include "codegen/emit/accumulator_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {

int32_t lanePartsOf(const Accumulator& accumulator, const RowLayout& layout) {
  if (layout.bundled) return layout.vector;
  return addsTogether(accumulator) ? 1 : std::min(layout.vector, 4);
}

void RowCombiner::parts(const std::vector<AccumulatorId>& accumulators) {
  if (layout_.bundled) return bundles(accumulators);
  for (AccumulatorId a : accumulators) lanes(a);
  threads(accumulators);
}

void RowCombiner::lanes(AccumulatorId a) {
  const std::string into = fmt::format("acc{}[0]", a);
  const int32_t parts = lanePartsOf(accumulator(a), layout_);
  if (parts == 1) return;
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int i = 1; i < {}; ++i) {} = {};", parts, into,
                        combineText(accumulator(a), into, fmt::format("acc{}[i]", a))));
}

// The warps of a row exchange their states through shared memory, with one barrier for all
// accumulators.
void RowCombiner::threads(const std::vector<AccumulatorId>& accumulators) {
  warps(accumulators);
  if (layout_.cluster > 1) blocks(accumulators);
}

void RowCombiner::warps(const std::vector<AccumulatorId>& accumulators) {
  const int warps = layout_.threads / layout_.cluster / 32;
  for (AccumulatorId a : accumulators) {
    const std::string into = fmt::format("acc{}[0]", a);
    if (layout_.threads > 1)
      writePartners(out_, accumulator(a), into, std::min(layout_.threads, 32) / 2, 1);
    if (warps <= 1) continue;
    out_.line(fmt::format("__shared__ hd::SharedBytes<{}> scratch{};",
                          stateBytes(accumulator(a)) * warps * layout_.rows, a));
    out_.line(fmt::format("const hd::SharedArray<{}> warp{}(scratch{});", stateType(accumulator(a)),
                          a, a));
    out_.line(fmt::format("if (share % 32 == 0) warp{}[hd::thread() / 32] = {};", a, into));
  }
  if (warps <= 1) return;
  out_.line("hd::barrier();");
  for (AccumulatorId a : accumulators) {
    out_.line(fmt::format("acc{}[0] = warp{}[row * {} + hd::thread() % {}];", a, a, warps, warps));
    writePartners(out_, accumulator(a), fmt::format("acc{}[0]", a), warps / 2, 1);
  }
}

// Each block stores its states in the shared memory of all blocks of the cluster, also its own. All
// blocks then combine them in the same order.
void RowCombiner::blocks(const std::vector<AccumulatorId>& accumulators) {
  declarePeers(accumulators, 1);
  out_.open(fmt::format("if (hd::thread() < {}) {{", layout_.cluster));
  for (AccumulatorId a : accumulators) {
    out_.line(fmt::format("hd::sendToBlock(peer{0}, rank, acc{0}[0], hd::thread());", a));
  }
  out_.close();
  out_.line("hd::clusterBarrier();");
  for (AccumulatorId a : accumulators) combinePeers(a, fmt::format("acc{}[0]", a), 1, "0");
}

// Declares shared memory for `count` states from each block of the cluster, and waits until all
// blocks have started.
void RowCombiner::declarePeers(const std::vector<AccumulatorId>& accumulators, int count) {
  for (AccumulatorId a : accumulators) {
    out_.line(fmt::format("__shared__ hd::SharedBytes<{}> peers{};",
                          stateBytes(accumulator(a)) * layout_.cluster * count, a));
    out_.line(
        fmt::format("const hd::SharedArray<{}> peer{}(peers{});", stateType(accumulator(a)), a, a));
  }
  if (!all_have_started_) out_.line("hd::awaitCluster();");
  all_have_started_ = true;
}

// Combines state number `at` of the `count` states of each block into `into`.
void RowCombiner::combinePeers(AccumulatorId a, const std::string& into, int count,
                               const std::string& at) {
  out_.line(fmt::format("{} = peer{}[{}];", into, a, at));
  out_.line("#pragma unroll");
  out_.line(fmt::format(
      "for (int b = 1; b < {}; ++b) {} = {};", layout_.cluster, into,
      combineText(accumulator(a), into, fmt::format("peer{}[b * {} + {}]", a, count, at))));
}

// The threads of a warp that share a bundle combine their states first. Each warp then stores its
// states as one part in shared memory. If no two threads of a warp share a bundle, each thread
// stores its states as one part. Then one thread per row of the block combines the parts of this
// row. In a cluster, this thread sends the result to all blocks.
void RowCombiner::bundles(const std::vector<AccumulatorId>& accumulators) {
  const int width = layout_.rows * layout_.vector;  // rows of the block
  const int block = layout_.blockThreads();
  const bool in_warps = layout_.rows < 32;
  const bool in_cluster = layout_.cluster > 1;
  const int parts = in_warps ? block / 32 : layout_.threads / layout_.cluster;
  for (AccumulatorId a : accumulators) {
    const std::string into = fmt::format("acc{}[lane]", a);
    if (in_warps) {
      out_.line("#pragma unroll");
      out_.open(fmt::format("for (int lane = 0; lane < {}; ++lane) {{", layout_.vector));
      writePartners(out_, accumulator(a), into, 16, layout_.rows);
      out_.close();
    }
    if (parts == 1) continue;
    const std::string type = stateType(accumulator(a));
    out_.line(fmt::format("__shared__ hd::SharedBytes<{}> scratch{};",
                          stateBytes(accumulator(a)) * parts * width, a));
    out_.line(fmt::format("const hd::SharedArray<{}> part{}(scratch{});", type, a, a));
    if (in_warps) out_.line(fmt::format("if (hd::thread() % 32 < {})", layout_.rows));
    forLanes(fmt::format("part{}[({} * {} + row) * {} + lane] = {};", a,
                         in_warps     ? "hd::thread() / 32"
                         : in_cluster ? fmt::format("(hd::thread() / {})", layout_.rows)
                                      : "share",
                         layout_.rows, layout_.vector, into));
  }
  if (parts == 1) return;
  out_.line("hd::barrier();");
  if (in_cluster) declarePeers(accumulators, width);
  out_.open(width <= block
                ? fmt::format("if (const int i = hd::thread(); i < {}) {{", width)
                : fmt::format("for (int i = hd::thread(); i < {}; i += {}) {{", width, block));
  for (AccumulatorId a : accumulators) {
    out_.line(fmt::format("{} sum{} = part{}[i];", stateType(accumulator(a)), a, a));
    const std::string sum = fmt::format("sum{}", a);
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int p = 1; p < {}; ++p) {} = {};", parts, sum,
                    combineText(accumulator(a), sum, fmt::format("part{}[p * {} + i]", a, width))));
    if (in_cluster) {
      out_.line(
          fmt::format("for (int b = 0; b < {}; ++b) hd::sendToBlock(peer{}, rank * {} + i, "
                      "{}, b);",
                      layout_.cluster, a, width, sum));
    } else {
      out_.line(fmt::format("part{}[i] = {};", a, sum));
    }
  }
  out_.close();
  out_.line(in_cluster ? "hd::clusterBarrier();" : "hd::barrier();");
  for (AccumulatorId a : accumulators) {
    const std::string at = fmt::format("row * {} + lane", layout_.vector);
    if (!in_cluster) {
      forLanes(fmt::format("acc{}[lane] = part{}[{}];", a, a, at));
      continue;
    }
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int lane = 0; lane < {}; ++lane) {{", layout_.vector));
    combinePeers(a, fmt::format("acc{}[lane]", a), width, at);
    out_.close();
  }
}

void RowCombiner::forLanes(const std::string& statement) {
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int lane = 0; lane < {}; ++lane) {}", layout_.vector, statement));
}

}  // namespace heddle::codegen
