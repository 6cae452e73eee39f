#pragma once

#include <string>
#include <vector>

#include "host/run/run_profile.h"

namespace heddle::host {

// One run on one rank.
struct RankTimeline {
  int rank = 0;
  std::string clock;  // equal for ranks whose times are of one clock: those of one machine
  std::vector<TimelineEvent> events;
};

// As bytes for the way to another rank, and back.
std::string encode(const RankTimeline& timeline);
RankTimeline decodeTimeline(const std::string& bytes);

// Shifts the clocks of other machines to that of the first timeline: the ranks of a collective that
// is also a barrier end it at about the same time, so a clock is ahead by the median of how much
// later its ranks end those that they share. A clock that shares none stays as it is.
void alignClocks(std::vector<RankTimeline>& timelines);

// The file that ui.perfetto.dev and chrome://tracing open: a process for each rank, a thread for
// each stream, and one for the host that issues. Times from the first event on.
std::string chromeTrace(const std::vector<RankTimeline>& timelines);

}  // namespace heddle::host
