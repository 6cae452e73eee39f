#pragma once

#include <string>

#include "comm/communicator.h"

namespace heddle::host {

// Compares the collectives and transfers that two ranks post. Two files use this comparison, both
// before the ranks issue any operation: host/verify/match_collectives.h compares unrolled programs,
// and host/run/match_collectives_across_ranks.h compares plans.

// Returns whether the posts of two ranks can be parts of the same operation. Both posts must be at
// the same position of a channel (host/verify/post_sequence.h). The function does not compare the
// counts of an all-to-all-v, because only the run knows them.
bool collectivesFit(const comm::Operation& a, const comm::Operation& b);
// Returns the text of a post for messages, such as "allreduce(sum) of 64 f32".
std::string postText(const comm::Operation& operation);

}  // namespace heddle::host
