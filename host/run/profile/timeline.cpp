#include "host/run/profile/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

using Json = nlohmann::ordered_json;
using Collective = std::tuple<InstructionIndex, int32_t, std::vector<int>>;

constexpr int kIssueThread = 1'000'000;  // large, so that viewers show it below the streams

// Returns the end of each collective: the time at which the last rank with the clock `clock`
// completed the collective.
std::map<Collective, int64_t> endsOn(const std::vector<RankTimeline>& timelines,
                                     const std::string& clock) {
  std::map<Collective, int64_t> ends;
  for (const RankTimeline& timeline : timelines) {
    if (timeline.clock != clock) continue;
    for (const TimelineEvent& event : timeline.events) {
      if (event.team.empty()) continue;
      int64_t& end = ends[{event.instruction, event.occurrence, event.team}];
      end = std::max(end, event.end);
    }
  }
  return ends;
}

// Returns the nanoseconds by which the clock `ahead` is ahead of the clock `base`. Returns nullopt
// if the ranks with these clocks share no collective.
std::optional<int64_t> offsetOf(const std::vector<RankTimeline>& timelines, const std::string& base,
                                const std::string& ahead) {
  const std::map<Collective, int64_t> ends = endsOn(timelines, base);
  std::vector<int64_t> differences;
  for (const auto& [collective, end] : endsOn(timelines, ahead)) {
    const auto found = ends.find(collective);
    if (found != ends.end()) differences.push_back(end - found->second);
  }
  if (differences.empty()) return std::nullopt;
  const auto middle = differences.begin() + static_cast<int64_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

void shift(std::vector<RankTimeline>& timelines, const std::string& clock, int64_t offset) {
  for (RankTimeline& timeline : timelines) {
    if (timeline.clock != clock) continue;
    for (TimelineEvent& event : timeline.events) {
      event.begin -= offset;
      event.end -= offset;
    }
  }
}

Json nameOf(const char* what, int rank, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

Json chromeEvent(const TimelineEvent& event, int rank, int64_t origin) {
  const bool issues = !event.stream.valid();
  return {{"ph", "X"},
          {"name", event.text},
          {"cat", issues               ? "issue"
                  : event.team.empty() ? "work"
                                       : "collective"},
          {"pid", rank},
          {"tid", issues ? kIssueThread : event.stream.number()},
          {"ts", microseconds(event.begin - origin)},
          {"dur", microseconds(event.end - event.begin)},
          {"args",
           {{"instruction", event.instruction},
            {"occurrence", event.occurrence},
            {"stream", event.stream.number()},
            {"bytes", event.bytes},
            {"team", event.team}}}};
}

}  // namespace

std::string encode(const RankTimeline& timeline) {
  Json json = {{"rank", timeline.rank}, {"clock", timeline.clock}, {"events", Json::array()}};
  for (const TimelineEvent& e : timeline.events) {
    json["events"].push_back(
        {e.instruction, e.text, e.stream.number(), e.begin, e.end, e.bytes, e.occurrence, e.team});
  }
  return json.dump();
}

RankTimeline decodeTimeline(const std::string& bytes) {
  const Json json = Json::parse(bytes);
  RankTimeline timeline;
  timeline.rank = json.at("rank");
  timeline.clock = json.at("clock");
  for (const Json& e : json.at("events")) {
    timeline.events.push_back({e.at(0), e.at(1), StreamId(e.at(2).get<int32_t>()), e.at(3), e.at(4),
                               e.at(5), e.at(6), e.at(7).get<std::vector<int>>()});
  }
  return timeline;
}

// Aligns one clock after another. Aligns each clock with a clock that is already aligned, if the
// machines of the two clocks share a collective. For example, clock C may be aligned with B after B
// was aligned with A.
void alignClocks(std::vector<RankTimeline>& timelines) {
  if (timelines.empty()) return;
  std::vector<std::string> aligned = {timelines.front().clock};
  std::set<std::string> unaligned;
  for (const RankTimeline& timeline : timelines) unaligned.insert(timeline.clock);
  unaligned.erase(aligned.front());
  for (size_t i = 0; i < aligned.size(); ++i) {
    for (auto clock = unaligned.begin(); clock != unaligned.end();) {
      const std::optional<int64_t> offset = offsetOf(timelines, aligned[i], *clock);
      if (!offset) {
        ++clock;
        continue;
      }
      shift(timelines, *clock, *offset);
      aligned.push_back(*clock);
      clock = unaligned.erase(clock);
    }
  }
}

std::string chromeTrace(const std::vector<RankTimeline>& timelines) {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const RankTimeline& timeline : timelines) {
    for (const TimelineEvent& event : timeline.events) origin = std::min(origin, event.begin);
  }
  Json events = Json::array();
  for (const RankTimeline& timeline : timelines) {
    const int rank = timeline.rank;
    events.push_back(nameOf("process_name", rank, 0, fmt::format("rank {}", rank)));
    events.push_back(nameOf("thread_name", rank, kIssueThread, "issued by the host"));
    std::set<StreamId> streams;
    for (const TimelineEvent& event : timeline.events) {
      if (event.stream.valid() && streams.insert(event.stream).second) {
        events.push_back(nameOf("thread_name", rank, event.stream.number(),
                                fmt::format("stream {}", event.stream)));
      }
      events.push_back(chromeEvent(event, rank, origin));
    }
  }
  const Json file = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return file.dump(1) + "\n";
}

}  // namespace heddle::host
