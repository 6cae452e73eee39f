#include "codegen/bind/candidate_numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/bind/segment_planner.h"

namespace heddle::codegen {
namespace {

// Returns a text with those decisions about a kernel of rows (codegen/families/rows/rows.h) that
// change the order of additions. RowLayout::rows changes this order only for bundles
// (RowLayout::bundled): neighbouring threads process neighbouring bundles, so `rows` decides which
// of the threads that share a bundle belong to one warp. The threads of a warp combine their
// results first. `looped` and `variant` decide whether the kernel has joint reductions
// (codegen/plan/joint.h).
std::string orderOf(const RowCandidate& rows) {
  const RowLayout& layout = rows.layout;
  const bool divided = layout.divided.parts > 0;
  return fmt::format("rows {} {} {} {} {} {} {} {} {} {} {}", layout.vector, layout.threads,
                     layout.cluster, layout.registers, layout.shifted, rows.looped,
                     static_cast<int>(rows.variant), divided ? 0 : layout.blocks,
                     layout.bundled ? layout.rows : 0, layout.shared_bytes > 0,
                     layout.divided.parts);
}

// Returns a text with those decisions of a schedule (codegen/plan/schedule.h) that change the order
// of additions. Cpp: `lanes` and `chunk` decide in which order the elements of an item are added.
// Cuda: with `unroll` > 1, a thread may first add the items that it loads together, and then add
// their sum to the sum of its earlier items.
std::string orderOf(const Schedule& schedule) {
  const std::string common = fmt::format("loop {} {} {} {}", static_cast<int>(schedule.kind),
                                         schedule.lanes, schedule.chunk, schedule.splits);
  if (schedule.target == Target::Cpp) return common;
  return common + fmt::format(" {} {} {} {}", schedule.unroll, schedule.block,
                              schedule.reduce_threads, schedule.shifted);
}

bool reduces(const EntryNumbers& entry) {
  if (entry.rows) return entry.sweeps.exchanges > 0;
  return entry.squares == 0 && entry.schedule.kind != ScheduleKind::Pointwise;
}

}  // namespace

std::vector<KernelNumbers> candidateNumbers(const Fusion& segment,
                                            const std::vector<TensorDesc>& inputs,
                                            const std::vector<TensorDesc>& outputs, Target target,
                                            const std::vector<int32_t>& alignments,
                                            const RunSizes& run,
                                            const std::vector<Candidate>& all) {
  SegmentPlanner planner(segment, target);
  std::vector<KernelNumbers> numbers;
  for (const Candidate& candidate : all) {
    numbers.push_back(planner.numbers({inputs, outputs, alignments, run, &candidate.choice}));
  }
  return numbers;
}

std::string reductionOrder(const KernelNumbers& numbers, Target target) {
  if (std::none_of(numbers.entries.begin(), numbers.entries.end(), reduces)) return "";
  std::string text;
  for (const EntryNumbers& entry : numbers.entries) {
    // An entry without reductions also counts: it may divide by a reduction that another entry has
    // computed, and programs of rows divide in another way than items (RowForm::reciprocals).
    const bool is_loop = !entry.rows && entry.squares == 0;
    if (!reduces(entry)) {
      text += is_loop ? "pointwise; " : "tiles; ";
      continue;
    }
    text += (entry.rows ? orderOf(*entry.rows) : orderOf(entry.schedule)) + "; ";
    // Cpp: Schedule::chunk decides how many elements of a row one inner loop adds.
    if (entry.rows && target == Target::Cpp) text += fmt::format("{} ", entry.schedule.chunk);
  }
  return text;
}

}  // namespace heddle::codegen
