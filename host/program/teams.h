#pragma once

#include <cstdint>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Returns the World ranks of the team of `rank`, in team order. Empty if `rank` is not in the mesh
// of the team.
std::vector<int> teamMembers(const Team& team, const Meshes& meshes, int64_t rank, int64_t ranks);

// Returns whether the program contains an instruction that posts to a team.
bool communicatesAnywhere(const Program& program);
// Returns whether the program contains a library call for a matrix product.
bool hasMatmuls(const Program& program);

}  // namespace heddle::host
