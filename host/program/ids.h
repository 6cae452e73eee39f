#pragma once

#include <vector>

#include "ir/base/id.h"
#include "ir/types/mesh.h"

namespace heddle::host {

using SlotId = Id<struct SlotTag>;      // index into Program::slots
using TokenId = Id<struct TokenTag>;    // index into Program::tokens
using EventId = Id<struct EventTag>;    // index into Program::events
using KernelId = Id<struct KernelTag>;  // index into Program::kernels
inline constexpr SlotId kNoSlot;        // invalid: no slot
using StreamId = Id<struct StreamTag>;  // number of a stream of the program, from 0
// The stream on which a run begins. The caller may pass it as RunOptions::stream
// (host/executable.h). The device creates all other streams.
inline constexpr StreamId kCallerStream{0};

// A division of the ranks of a mesh (ir/types/mesh.h) into teams. The ranks of a team execute
// collectives together. Two ranks are in the same team if their mesh coordinates differ only along
// `axes`. If `axes` is empty, all ranks of the mesh form one team.
// Ranks in a team are numbered from 0, in the order of their coordinates along `axes`. The
// coordinate along the last axis varies fastest. If `axes` is empty, the order is that of the mesh
// (DeviceMesh::rankAt()).
struct Team {
  MeshId mesh = kNoMesh;  // kNoMesh: one team of all ranks of the job, in their order
  std::vector<MeshAxis> axes;
  bool operator==(const Team&) const = default;
};

}  // namespace heddle::host
