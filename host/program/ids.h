#pragma once

#include <cstdint>
#include <vector>

#include "ir/types/mesh.h"

namespace heddle::host {

using SlotId = int32_t;    // index into Program::slots
using TokenId = int32_t;   // index into Program::tokens
using EventId = int32_t;   // index into Program::events
using KernelId = int32_t;  // index into Program::kernels
inline constexpr SlotId kNoSlot = -1;
using StreamId = int32_t;  // 0 is the caller's stream; the device creates the others

// A division of the ranks of a mesh (ir/types/mesh.h) into teams. The ranks of a team execute their
// collectives together. Two ranks are in the same team if their mesh coordinates differ only along
// `axes`. If `axes` is empty, all ranks of the mesh form one team.
// Ranks in a team are numbered from 0, in the order of their coordinates along `axes`. The
// coordinate along the last axis varies fastest.
struct Team {
  MeshId mesh = kNoMesh;  // kNoMesh: one team of all ranks of the job
  std::vector<MeshAxis> axes;
  bool operator==(const Team&) const = default;
};

}  // namespace heddle::host
