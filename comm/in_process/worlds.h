#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// Creates the World of a job that has only one rank.
std::unique_ptr<World> makeSingleWorld();

// Creates the Worlds of `size` ranks in this process, on host memory. Use each World in a thread of
// its own.
std::vector<std::unique_ptr<World>> makeInProcessWorlds(int size);

}  // namespace heddle::comm
