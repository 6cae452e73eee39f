#include "host/program/teams.h"

#include <numeric>

#include "host/program/library_op.h"
#include "host/program/visit.h"

namespace heddle::host {

std::vector<int> teamMembers(const Team& team, const Meshes& meshes, int64_t rank, int64_t ranks) {
  std::vector<int> members;
  if (!team.mesh.valid()) {
    members.resize(ranks);
    std::iota(members.begin(), members.end(), 0);
    return members;
  }
  const DeviceMesh& mesh = meshes.at(team.mesh);
  if (mesh.positionOf(rank) < 0) return members;
  if (team.axes.empty()) {
    for (int64_t i = 0; i < mesh.size(); ++i) members.push_back(static_cast<int>(mesh.rankAt(i)));
    return members;
  }
  for (int64_t member : mesh.team(rank, team.axes)) members.push_back(static_cast<int>(member));
  return members;
}

bool communicatesAnywhere(const Program& program) {
  bool found = false;
  forEachInstruction(program.body, [&](const Instruction& instruction, InstructionIndex) {
    found = found || teamOf(instruction.op) != nullptr;
  });
  return found;
}

bool hasTimedLibraryCalls(const Program& program) {
  bool found = false;
  forEachInstruction(program.body, [&](const Instruction& instruction, InstructionIndex) {
    // Every matrix product is a library call: no kernel contains one.
    const auto* call = std::get_if<CallLibrary>(&instruction.op);
    found = found || (call != nullptr && (isAttention(*call) ||
                                          findLibraryOp(call->function)->kind == OpKind::Matmul));
  });
  return found;
}

}  // namespace heddle::host
