#pragma once

#include <vector>

#include "ir/base/id.h"
#include "ir/types/mesh.h"

namespace heddle::host {

using SlotId = Id<struct SlotTag>;      // index into Program::slots
using TokenId = Id<struct TokenTag>;    // index into Program::tokens
using EventId = Id<struct EventTag>;    // index into Program::events
using KernelId = Id<struct KernelTag>;  // index into Program::kernels
inline constexpr SlotId kNoSlot;
using StreamId = Id<struct StreamTag>;  // the device creates the streams other than the caller's
inline constexpr StreamId kCallerStream{0};

// Divides the ranks of a mesh into teams. The ranks of one team have equal mesh coordinates, except
// along `axes`. Without axes, all ranks of the mesh are one team. The order of the axes decides the
// rank in the team; the first axis is the outermost one.
struct Team {
  MeshId mesh = kNoMesh;  // kNoMesh: all ranks of the job
  std::vector<MeshAxis> axes;
  bool operator==(const Team&) const = default;
};

}  // namespace heddle::host
