#include "codegen/emit/tiles/emit_shifted_columns.h"

#include <algorithm>

#include "codegen/emit/accumulator_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {

// All inputs with columns have the same shift, so the text computes that of the first one.
void writeShift(TextWriter& out, const TileProgram& program) {
  const KernelFrame& frame = program.frame;
  const auto input = std::ranges::find_if(
      frame.accesses, [](const Access& a) { return !a.output && a.lane == LaneStride::One; });
  HEDDLE_CHECK(input != frame.accesses.end(), "no input of a shifted reduction has columns");
  out.line("int shift = 0;");
  out.open("if (active) {");
  out.line("const Index reduced = range_begin + share;");
  writeCoordinates(out, frame.reduced);
  out.line(fmt::format("shift = hd::shiftOf<{}>({} + ({}));", program.items->lanes, input->name,
                       (input->kept_offset + input->reduced_offset).str()));
  out.close();
}

void writeShiftedLanes(TextWriter& out, const TileProgram& program) {
  const std::string start = program.frame.lane_start.str();
  out.line(fmt::format("const int first_lane = {} == 0 ? shift : 0;", start));
  out.line(fmt::format("const int count = (int)hd::smaller<Index>({}, lane_extent - {} + shift);",
                       program.items->lanes, start));
}

// The neighbours of a row in memory are elements of the same tensor, unless the row is the first or
// the last one. Vectors at the ends of other rows are therefore complete too.
std::string shiftedLoadText(const Access& access, int32_t lanes, const char* streams,
                            const std::string& to) {
  const std::string offset = (access.kept_offset + access.reduced_offset).str();
  return fmt::format(
      "hd::loadShifted<{0}{1}>({2}, {3} + ({4}) - shift, first_lane, count, "
      "hd::inside(({4}) - shift, {5}));",
      lanes, streams, to, access.name, offset, access.vector_begins.str());
}

std::string ownsColumns(const Schedule& schedule, const std::string& before) {
  return schedule.shifted ? fmt::format("{}column < {}", before, schedule.columnsOfBlock()) : "";
}

std::string reducesColumn(const Schedule& schedule) {
  const bool is_second_half = schedule.overlaps && !schedule.shifted;
  return is_second_half ? fmt::format("kept < kept_items && column < {}", schedule.columnsOfBlock())
                        : "kept < kept_items";
}

// The states of the first `shift` lanes belong to the left neighbour. The last thread of a row has
// no right neighbour. It therefore also writes states without elements for those of its own columns
// that only a right neighbour could have.
void writeMoveToColumns(TextWriter& out, const TileProgram& program, AccumulatorId a,
                        const StatePlace& place) {
  const std::string start = program.frame.lane_start.str();
  const int32_t lanes = program.items->lanes;
  out.line("#pragma unroll");
  out.open(fmt::format("for (int i = 0; i < {}; ++i) {{", lanes));
  out.line(fmt::format("const int lane = (i - shift) & {};", lanes - 1));
  out.line(fmt::format("if (i >= shift) {} = acc{}[i];", place("lane", "share", "column"), a));
  out.line(fmt::format("if (i < shift && column > 0 && {} > 0) {} = acc{}[i];", start,
                       place("lane", "share", "column - 1"), a));
  out.line(fmt::format("if (i < shift && {} + 1 >= lane_extent) {} = {};", start,
                       place("lane", "share", "column"),
                       identityText(program.frame.accumulators[a])));
  out.close();
}

}  // namespace heddle::codegen
