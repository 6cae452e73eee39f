// Tests timelines of several machines: serialized to bytes, aligned to one clock, and written to a
// file.
#include "host/run/profile/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace heddle::host::timeline_test {
namespace {

TimelineEvent event(InstructionIndex instruction, int64_t begin, int64_t end,
                    std::vector<int> team = {}, int32_t occurrence = 0) {
  return {instruction, "text", kCallerStream, begin, end, 64, occurrence, std::move(team)};
}

TEST(Timeline, EncodedTimelineDecodesUnchanged) {
  const RankTimeline before{3, "clock", {event(1, 10, 20), event(2, 30, 45, {0, 3}, 7)}};
  const RankTimeline after = decodeTimeline(encode(before));
  EXPECT_EQ(after.rank, 3);
  EXPECT_EQ(after.clock, "clock");
  ASSERT_EQ(after.events.size(), 2u);
  EXPECT_EQ(after.events[1].instruction, 2);
  EXPECT_EQ(after.events[1].text, "text");
  EXPECT_EQ(after.events[1].begin, 30);
  EXPECT_EQ(after.events[1].end, 45);
  EXPECT_EQ(after.events[1].bytes, 64);
  EXPECT_EQ(after.events[1].occurrence, 7);
  EXPECT_EQ(after.events[1].team, (std::vector<int>{0, 3}));
}

// Clock b is 1000 ahead of clock a, and clock c is 50 behind clock b. For one collective, the rank
// with clock b recorded the end too late. The result must not depend on this collective.
TEST(Timeline, ClocksAreAlignedByTheMedianOfSharedCollectives) {
  const std::vector<int> ab = {0, 1}, bc = {1, 2};
  std::vector<RankTimeline> timelines = {
      {0, "a", {event(0, 0, 10, ab), event(0, 20, 30, ab, 1), event(0, 40, 50, ab, 2)}},
      {1,
       "b",
       {event(0, 1005, 1010, ab), event(0, 1022, 1430, ab, 1), event(0, 1040, 1050, ab, 2),
        event(5, 1060, 1070, bc)}},
      {2, "c", {event(5, 1012, 1020, bc)}},
      {3, "d", {event(9, 7, 8)}}};
  alignClocks(timelines);
  EXPECT_EQ(timelines[0].events[0].end, 10);
  EXPECT_EQ(timelines[1].events[0].begin, 5);
  EXPECT_EQ(timelines[1].events[2].end, 50);
  EXPECT_EQ(timelines[1].events[3].end, 70);
  EXPECT_EQ(timelines[2].events[0].begin, 62);
  EXPECT_EQ(timelines[2].events[0].end, 70);
  EXPECT_EQ(timelines[3].events[0].begin, 7) << "shares nothing, stays";
}

TEST(Timeline, PerfettoFileHoldsEverySpan) {
  TimelineEvent issued = event(4, 2000, 3000);
  issued.stream = StreamId();
  const std::string text = chromeTrace({{0, "a", {issued}}, {1, "a", {event(4, 5000, 9500)}}});
  const auto json = nlohmann::json::parse(text);
  int spans = 0;
  for (const auto& one : json.at("traceEvents")) {
    if (one.at("ph") != "X") continue;
    ++spans;
    const bool on_stream = one.at("pid") == 1;
    EXPECT_EQ(one.at("ts"), on_stream ? 3.0 : 0.0);
    EXPECT_EQ(one.at("dur"), on_stream ? 4.5 : 1.0);
    EXPECT_EQ(one.at("cat"), on_stream ? "work" : "issue");
    EXPECT_EQ(one.at("args").at("instruction"), 4);
    EXPECT_EQ(one.at("args").at("bytes"), 64);
  }
  EXPECT_EQ(spans, 2);
}

}  // namespace
}  // namespace heddle::host::timeline_test
