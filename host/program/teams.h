#pragma once

#include <cstdint>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Returns the members of the team to which `rank` belongs, as ranks of the job (comm::World),
// ordered by their ranks in the team. Returns an empty list if `rank` is not in the mesh of the
// team. `ranks` is the number of ranks of the job.
std::vector<int> teamMembers(const Team& team, const Meshes& meshes, int64_t rank, int64_t ranks);

// Returns whether the program contains an instruction in which other ranks take part: a collective,
// a send or a receive. Does not visit Program::callees.
bool communicatesAnywhere(const Program& program);
// Returns whether the program contains a library call for which devices choose an algorithm: a
// matrix product or an attention. Does not visit Program::callees.
bool hasTimedLibraryCalls(const Program& program);

}  // namespace heddle::host
