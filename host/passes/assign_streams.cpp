#include "host/passes/assign_streams.h"

#include <algorithm>

#include "host/passes/analysis/buffer_accesses.h"

namespace heddle::host {

Program assignStreams(Program program) {
  if (program.streams() > 1 || !isUnordered(program, bufferAccessesOf(program))) return program;
  constexpr size_t kMaxTeams = 15;              // the largest size of `teams`
  std::vector<std::pair<Team, int32_t>> teams;  // pairs of a team and a copy channel
  for (Instruction& x : program.body) {
    // Only Communicate posts here: isUnordered() is false for programs with Send and Recv.
    auto* post = std::get_if<Communicate>(&x.op);
    if (post == nullptr) continue;
    const std::pair team(post->team, post->carrier.copy_channel);
    auto found = std::find(teams.begin(), teams.end(), team);
    if (found == teams.end() && teams.size() < kMaxTeams) {
      teams.push_back(team);
      found = teams.end() - 1;
    }
    const auto index = std::min<size_t>(found - teams.begin(), kMaxTeams - 1);
    post->stream = StreamId(1 + index);
  }
  return program;
}

}  // namespace heddle::host
