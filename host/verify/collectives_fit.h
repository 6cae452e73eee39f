#pragma once

#include <string>

#include "comm/communicator.h"

namespace heddle::host {

// The rule by which posts are compared before ranks issue them: in unrolled programs
// (host/verify/match_collectives.h) and in plans (host/run/match_collectives_across_ranks.h).

// Returns whether two posts can be parts of one operation. The caller passes posts at the same
// position of a channel (host/verify/post_sequence.h). The counts of an all-to-all-v are not
// compared, because they come from the run.
bool collectivesFit(const comm::Operation& a, const comm::Operation& b);
// Returns the text of a post for messages, such as "allreduce(sum) of 64 f32".
std::string postText(const comm::Operation& operation);

}  // namespace heddle::host
