#include "host/passes/chunk/branch_on_remainder.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/program/visit.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Appends the events of `from` to the events of `to`, and changes their ids in `from`. If the name
// of an event already exists, the event gets a new name.
void addEvents(Program& to, Program& from) {
  IdVector<EventId, EventId> renamed;
  for (std::string name : from.events) {
    const auto taken = [&] {
      return std::find(to.events.begin(), to.events.end(), name) != to.events.end();
    };
    for (size_t n = to.events.size(); taken(); ++n) name = fmt::format("e{}", n);
    renamed.push_back(to.events.push_back(std::move(name)));
  }
  Renaming renaming;
  renaming.event = [&](EventId id) { return renamed[id]; };
  forEachInstruction(from.body, [&](Instruction& x, InstructionIndex) { rename(x, renaming); });
}

}  // namespace

Program branchOnRemainder(const Size& rest, Program even, Program otherwise) {
  HEDDLE_CHECK(even.inputs == otherwise.inputs && even.outputs == otherwise.outputs &&
                   even.kernels.size() >= otherwise.kernels.size() &&
                   even.slots.size() >= otherwise.slots.size() &&
                   even.tokens.size() >= otherwise.tokens.size(),
               "the two versions of program {} do not match", even.name);
  addEvents(even, otherwise);
  If choice{
      {rest, Predicate::Compare::Eq, Size(0)}, std::move(even.body), std::move(otherwise.body)};
  even.body.clear();
  even.body.push_back({std::move(choice)});
  return even;
}

}  // namespace heddle::host
