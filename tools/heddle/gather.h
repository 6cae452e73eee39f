#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "ir/host_tensor.h"

namespace heddle::tools {

// Puts the blocks of one output together on rank 0, which gets the unsharded tensor (the others get
// an empty one). Blocks that several ranks hold are compared bit by bit: `differs` says which ranks
// disagree, or is empty. Collective over the job.
HostTensor gatherOutput(comm::World& world, const HostTensor& local, const TensorDesc& desc,
                        std::string& differs);

}  // namespace heddle::tools
