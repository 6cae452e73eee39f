#pragma once

#include <string>
#include <vector>

#include "host/run/run_profile.h"

namespace heddle::host {

// The record of one run on one rank.
struct RankTimeline {
  int rank = 0;
  std::string clock;  // names the clock of the times; equal for the ranks of one machine
  std::vector<TimelineEvent> events;
};

// Convert a timeline to bytes that can be sent to another rank, and back.
std::string encode(const RankTimeline& timeline);
RankTimeline decodeTimeline(const std::string& bytes);

// Shifts the times of all machines to the clock of the first timeline. The ranks of a collective
// that is also a barrier end it at about the same time. The offset of a clock is therefore the
// median difference between the ends of the collectives that two machines share. If no collective
// connects a clock with the first one, its times are not shifted.
void alignClocks(std::vector<RankTimeline>& timelines);

// Returns a file (JSON) for ui.perfetto.dev and chrome://tracing. It shows each rank as a process,
// with one thread for each stream and one for the issuing host. Times start at the first event.
std::string chromeTrace(const std::vector<RankTimeline>& timelines);

}  // namespace heddle::host
