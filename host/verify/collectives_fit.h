#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "comm/communicator.h"

namespace heddle::host {

// What ranks post side by side, for those who compare it before it is posted: of unrolled programs
// (host/verify/match_collectives.h) and of plans (host/run/match_collectives_across_ranks.h). The
// lists of an all-to-all-v come later, from the run.

// Whether two posts that meet are meant for each other.
bool collectivesFit(const comm::Operation& a, const comm::Operation& b);
// "allreduce(sum) of 64 f32"
std::string postText(const comm::Operation& operation);

// Which steps of a list stand in no branch that the run decides, in a walk from its beginning. Such
// branches go forward: from the If over its first body, from the end of that over the second.
class DecidedSteps {
 public:
  // The step that is walked over may go to `target`.
  void jump(size_t target) { end_ = std::max(end_, target); }
  bool has(size_t step) const { return step >= end_; }

 private:
  size_t end_ = 0;
};

}  // namespace heddle::host
