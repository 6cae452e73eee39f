#include "codegen/emit/emit_row_combine.h"

#include <algorithm>

#include "codegen/emit/accumulator_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {

int32_t lanePartsOf(const Accumulator& accumulator, const RowLayout& layout) {
  return addsTogether(accumulator) ? 1 : std::min(layout.vector, 4);
}

void RowCombiner::parts(const std::vector<AccumulatorId>& accumulators) {
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
  const int warps = layout_.threads / 32;
  for (AccumulatorId a : accumulators) {
    const std::string into = fmt::format("acc{}[0]", a);
    if (layout_.threads > 1) partners(a, std::min(layout_.threads, 32) / 2);
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
    partners(a, warps / 2);
  }
}

void RowCombiner::partners(AccumulatorId a, int first_mask) {
  const std::string into = fmt::format("acc{}[0]", a);
  out_.line("#pragma unroll");
  out_.line(fmt::format(
      "for (int mask = {}; mask > 0; mask /= 2) {} = {};", first_mask, into,
      combineText(accumulator(a), into, fmt::format("hd::fromPartner({}, mask)", into))));
}

}  // namespace heddle::codegen
