#include "codegen/emit/emit_joint_values.h"

#include "codegen/emit/accumulator_text.h"

namespace heddle::codegen {

// An item before the last one of a step can be incomplete only if several axes are reduced. With
// one reduced axis, only the last item of the row can be incomplete.
JointValues::JointValues(TextWriter& out, const TileProgram& program)
    : out_(out),
      s_(*program.items),
      inner_(s_.kind == ScheduleKind::InnerReduction),
      per_item_(inner_ && !s_.exact && program.frame.reduced.size() > 1) {
  for (AccumulatorId a : withState(program.frame.accumulators)) {
    if (addsTogether(program.frame.accumulators[a])) accumulators_.push_back(a);
  }
}

void JointValues::beginStep() {
  if (!per_item_) declare();
}

void JointValues::beginItem() {
  if (per_item_) declare();
}

std::string JointValues::entry(AccumulatorId a, const char* slot) const {
  if (per_item_) return fmt::format("values{}[lane]", a);
  return inner_ ? fmt::format("values{}[{} * {} + lane]", a, slot, s_.lanes)
                : fmt::format("values{}[lane][{}]", a, slot);
}

void JointValues::endItem() {
  if (accumulators_.empty()) return;
  out_.line(inner_ ? "valid += count;" : "valid += 1;");
  if (per_item_) add();
}

void JointValues::endStep() {
  if (!per_item_) add();
}

void JointValues::declare() {
  if (accumulators_.empty()) return;
  const std::string sizes = inner_ ? fmt::format("[{}]", s_.lanes * (per_item_ ? 1 : s_.unroll))
                                   : fmt::format("[{}][{}]", s_.lanes, s_.unroll);
  for (AccumulatorId a : accumulators_) out_.line(fmt::format("float values{}{};", a, sizes));
  out_.line("int valid = 0;");
}

void JointValues::add() {
  for (AccumulatorId a : accumulators_) {
    if (inner_) {
      out_.line(fmt::format("hd::add(acc{0}[0], values{0}, 0, valid);", a));
      continue;
    }
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int lane = 0; lane < {}; ++lane) {{", s_.lanes));
    if (!s_.exact) out_.line("if (lane >= count) break;");
    out_.line(fmt::format("hd::add(acc{0}[lane], values{0}[lane], 0, valid);", a));
    out_.close();
  }
}

}  // namespace heddle::codegen
