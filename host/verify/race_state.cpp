#include "host/verify/race_state.h"

#include <algorithm>

namespace heddle::host {
namespace {

bool within(int32_t post, size_t first, size_t last) {
  return static_cast<size_t>(post) >= first && static_cast<size_t>(post) < last;
}

bool contains(const std::vector<int32_t>& list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

RaceState::RaceState(size_t stream_count, size_t token_count, size_t event_count,
                     size_t buffer_count)
    : StreamClocks(stream_count, token_count, event_count),
      buffers(buffer_count),
      last_work(stream_count, -1),
      work_time(stream_count, 0) {}

IdVector<StreamId, int32_t> RaceState::times() const {
  IdVector<StreamId, int32_t> out;
  for (StreamId s : streams.ids()) out.push_back(streams[s].streams[s]);
  return out;
}

void RaceState::raise(const IdVector<StreamId, int32_t>& from,
                      const IdVector<StreamId, int32_t>& to, size_t first, size_t last) {
  const auto raiseOne = [&](VectorClock& clock) {
    for (StreamId s : from.ids()) {
      if (clock.streams[s] >= from[s]) clock.streams[s] = std::max(clock.streams[s], to[s]);
    }
    clock.posts.add(static_cast<int32_t>(first), static_cast<int32_t>(last));
  };
  for (VectorClock& clock : streams) raiseOne(clock);
  for (auto& event : events) {
    if (event) raiseOne(*event);
  }
  for (TokenClock& token : tokens) raiseOne(token.start);
}

void RaceState::beginOtherwise(const RaceState& then) {
  raise(times(), then.times(), post_step.size(), then.post_step.size());
  post_step = then.post_step;
}

BufferId RaceState::merge(RaceState otherwise, size_t posts_before, size_t posts_then) {
  // First, all work of the second body is marked as completed in *this. beginOtherwise() has done
  // the same for the first body in `otherwise`. Only then can the clocks be compared.
  RaceState& other = otherwise;
  raise(times(), other.times(), posts_then, other.post_step.size());
  for (StreamId s : streams.ids()) {
    streams[s].meet(other.streams[s]);
    if (other.work_time[s] > work_time[s]) {
      work_time[s] = other.work_time[s];
      last_work[s] = other.last_work[s];
    }
  }
  for (EventId e : events.ids()) {
    if (!other.events[e]) events[e].reset();
    if (events[e]) events[e]->meet(*other.events[e]);
  }
  for (TokenId t : tokens.ids()) {
    TokenClock& mine = tokens[t];
    TokenClock& theirs = other.tokens[t];
    mine.start.meet(theirs.start);
    // After the branch, a token may represent a post of either body. A post from before the branch
    // remains only if the token represents it after both bodies.
    std::vector<int32_t> both;
    for (int32_t post : mine.posts) {
      if (contains(theirs.posts, post) || within(post, posts_before, posts_then)) {
        both.push_back(post);
      }
    }
    for (int32_t post : theirs.posts) {
      if (within(post, posts_then, other.post_step.size())) both.push_back(post);
    }
    mine.posts = std::move(both);
  }
  post_step = std::move(other.post_step);
  for (BufferId b : buffers.ids()) {
    RaceBuffer& mine = buffers[b];
    RaceBuffer& theirs = other.buffers[b];
    const bool here = mine.allocated >= 0, there = theirs.allocated >= 0;
    const bool live_here = here && mine.freed < 0, live_there = there && theirs.freed < 0;
    if (live_here != live_there) return b;
    if (!here) mine = std::move(theirs);
    for (RaceAccess& access : theirs.accesses) {
      if (std::find(mine.accesses.begin(), mine.accesses.end(), access) == mine.accesses.end()) {
        mine.accesses.push_back(access);
      }
    }
  }
  return BufferId();
}

}  // namespace heddle::host
