#pragma once

#include <string>
#include <vector>

#include "host/run/profile/run_profile.h"

namespace heddle::host {

// The record of one run on one rank.
struct RankTimeline {
  int rank = 0;
  std::string clock;  // name of the clock that measured the times; all ranks of a machine share one
  std::vector<TimelineEvent> events;
};

// encode() converts a timeline to bytes that can be sent to another rank. decodeTimeline() converts
// the bytes back.
std::string encode(const RankTimeline& timeline);
RankTimeline decodeTimeline(const std::string& bytes);

// Converts the times of all machines to the clock of the first timeline. All ranks complete a
// collective that is also a barrier (TimelineEvent::team) at about the same time. The offset
// between the clocks of two machines is therefore the median difference between the ends of such
// collectives. If a machine shares no such collective with the machine of the first timeline, its
// times are converted through the clocks of other machines. If no chain of shared collectives
// connects the two machines, the times remain unchanged.
void alignClocks(std::vector<RankTimeline>& timelines);

// Returns the text of a JSON file for ui.perfetto.dev and chrome://tracing. The file shows each
// rank as a process, with one thread for each stream and one thread for the host. Time 0 is the
// beginning of the earliest event.
std::string chromeTrace(const std::vector<RankTimeline>& timelines);

}  // namespace heddle::host
