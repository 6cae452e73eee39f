#include "host/unroll/unroll.h"

#include <memory>

#include "host/program/visit.h"
#include "host/unroll/unroller.h"

namespace heddle::host {
namespace {

// Assigns the stream of the posts in a group to the steps of its GroupBegin and GroupEnd. These two
// instructions name no stream.
void placeGroups(Unrolled& unrolled) {
  size_t begin = 0;
  StreamId stream = kCallerStream;
  for (size_t i = 0; i < unrolled.steps.size(); ++i) {
    if (unrolled.steps[i].instruction == nullptr) continue;
    const Op& op = unrolled.steps[i].instruction->op;
    // Only GroupBegin and GroupEnd delimit a group.
    if (std::holds_alternative<GroupBegin>(op)) begin = i, stream = kCallerStream;
    if (kindOf(op) == InstructionKind::Post) stream = unrolled.steps[i].stream;
    if (!std::holds_alternative<GroupEnd>(op)) continue;
    unrolled.steps[i].stream = unrolled.steps[begin].stream = stream;
  }
}

bool hasCalls(const Program& program) {
  bool found = false;
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    found = found || kindOf(x.op) == InstructionKind::Call;
  });
  return found;
}

}  // namespace

void ViewList::appendEmpty() {
  static const SharedView empty = std::make_shared<const View>();
  views_.push_back(empty);
}

Unrolled unroll(const Program& program, const UnrollRequest& request) {
  std::shared_ptr<const Program> inlined;
  if (hasCalls(program)) inlined = std::make_shared<const Program>(inlineCalls(program));
  Unrolled out = Unroller(inlined ? *inlined : program, request).run();
  placeGroups(out);
  out.inlined = std::move(inlined);
  return out;
}

}  // namespace heddle::host
