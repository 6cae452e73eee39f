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
using StreamId = int32_t;  // 0 is the caller's stream; others are made by the device

// A team of ranks: those that differ only in these axes of the mesh. No axes: every rank of the
// mesh. Outermost axis first; the order gives the ranks within the team.
struct Team {
  MeshId mesh;  // kNoMesh: all ranks of the job
  std::vector<MeshAxis> axes;
  bool operator==(const Team&) const = default;
};

}  // namespace heddle::host
