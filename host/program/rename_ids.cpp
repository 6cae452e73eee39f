#include "host/program/visit.h"

namespace heddle::host {

void rename(Instruction& instruction, const Renaming& to) {
  const auto replace = [](auto& id, const auto& function) {
    if (function) id = function(id);
  };
  Op& op = instruction.op;
  forEachSlot(op, [&](SlotId& id, FieldRole) { replace(id, to.slot); });
  forEachSize(op, [&](Size& size) { replace(size, to.size); });
  forEachToken(op, [&](TokenId& id, FieldRole) { replace(id, to.token); });
  forEachFieldOfKind<FieldKind::EventUse>(op,
                                          [&](EventId& id, FieldRole) { replace(id, to.event); });
  forEachFieldOfKind<FieldKind::Kernel>(op,
                                        [&](KernelId& id, FieldRole) { replace(id, to.kernel); });
  forEachFieldOfKind<FieldKind::Team>(op, [&](Team& team, FieldRole) {
    if (team.mesh.valid()) replace(team.mesh, to.mesh);
  });
  forEachFieldOfKind<FieldKind::LoopIndex>(
      op, [&](std::string& name, FieldRole) { replace(name, to.index); });
  if (instruction.on.valid()) replace(instruction.on, to.mesh);
}

}  // namespace heddle::host
