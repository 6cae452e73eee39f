#pragma once

#include <cstdint>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// World ranks of the team in which `rank` is, in team order; empty when the rank is not in its
// mesh.
std::vector<int> teamMembers(const Team& team, const Meshes& meshes, int64_t rank, int64_t ranks);

// Whether some instruction posts to a team.
bool communicatesAnywhere(const Program& program);
// Whether some instruction is a library's matrix product.
bool hasMatmuls(const Program& program);

}  // namespace heddle::host
