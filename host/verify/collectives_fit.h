#pragma once

#include <string>

#include "comm/communicator.h"

namespace heddle::host {

// Compares the collectives and transfers that two ranks post, before the ranks issue any operation.

// Returns whether the posts of two ranks can be parts of the same operation. Requires that both
// posts are at the same position of a channel (host/verify/post_sequence.h). Ignores the counts of
// an all-to-all-v, because only the run knows them.
bool collectivesFit(const comm::Operation& a, const comm::Operation& b);
// Returns the text of a post for messages, such as "allreduce(sum) of 64 f32".
std::string postText(const comm::Operation& operation);

}  // namespace heddle::host
