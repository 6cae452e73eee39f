#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace heddle::comm {

// A job of one rank.
std::unique_ptr<World> makeSingleWorld();

// `size` ranks in this process, each to be used by a thread of its own; host memory.
std::vector<std::unique_ptr<World>> makeInProcessWorlds(int size);

}  // namespace heddle::comm
