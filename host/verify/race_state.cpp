#include "host/verify/race_state.h"

#include <algorithm>
#include <utility>

#include "host/program/visit.h"

namespace heddle::host {
namespace {

bool within(int32_t post, size_t first, size_t last) {
  return static_cast<size_t>(post) >= first && static_cast<size_t>(post) < last;
}

bool contains(const std::vector<int32_t>& list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Returns whether `a` makes `b` redundant: every later access that races with `b` also races with
// `a`. Returns true only if neither belongs to a post, both are on one stream, and `a` is not
// earlier than `b`.
bool covers(const RaceAccess& a, const RaceAccess& b) {
  return a.post < 0 && b.post < 0 && a.stream == b.stream && a.time >= b.time &&
         a.begin <= b.begin && b.end <= a.end && (a.write || !b.write);
}

// Returns the value of a key, or `otherwise` if the map does not have it.
template <class Key, class Value>
const Value& valueOr(const std::map<Key, Value>& values, Key key, const Value& otherwise) {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : found->second;
}

}  // namespace

RaceState::RaceState(size_t stream_count, size_t token_count, size_t event_count,
                     size_t buffer_count)
    : StreamClocks(stream_count, token_count, event_count),
      buffers(buffer_count),
      last_work(stream_count, -1),
      work_time(stream_count, 0),
      event_raises_(event_count, 0),
      token_raises_(token_count, 0) {}

void RaceState::Raise::apply(VectorClock& clock) const {
  for (StreamId s : from.ids()) {
    if (clock.streams[s] >= from[s]) clock.streams[s] = std::max(clock.streams[s], to[s]);
  }
  clock.posts.add(static_cast<int32_t>(first), static_cast<int32_t>(last));
}

IdVector<StreamId, int32_t> RaceState::times() const {
  IdVector<StreamId, int32_t> out;
  for (StreamId s : streams.ids()) out.push_back(streams[s].streams[s]);
  return out;
}

// --- changes ---------------------------------------------------------------------------------

void RaceState::storeEvent(EventId id) {
  if (branches_.empty()) return;
  branches_.back().before.events.try_emplace(id, StoredEvent{events.at(id), event_raises_[id]});
}

void RaceState::storeToken(TokenId id) {
  if (branches_.empty()) return;
  branches_.back().before.tokens.try_emplace(id, StoredToken{tokens.at(id), token_raises_[id]});
}

RaceBuffer& RaceState::changed(BufferId id) {
  RaceBuffer& buffer = buffers.at(id);
  if (!branches_.empty()) branches_.back().before.buffers.try_emplace(id, buffer);
  return buffer;
}

// Applies the raises that have not been applied to the clock of the event yet. They belong to
// second bodies that began after the event was recorded.
void RaceState::refreshEvent(EventId id) {
  if (event_raises_.at(id) == raises_.size()) return;
  storeEvent(id);
  for (size_t& i = event_raises_[id]; i < raises_.size(); ++i) {
    if (events[id]) raises_[i].apply(*events[id]);
  }
}

void RaceState::refreshToken(TokenId id) {
  if (token_raises_.at(id) == raises_.size()) return;
  storeToken(id);
  for (size_t& i = token_raises_[id]; i < raises_.size(); ++i) raises_[i].apply(tokens[id].start);
}

bool RaceState::order(const Op& op, StreamId stream) {
  if (kindOf(op) != InstructionKind::Order) return false;
  forEachToken(op, [&](TokenId id, FieldRole) { refreshToken(id); });
  forEachFieldOfKind<FieldKind::EventUse>(op, [&](EventId id, FieldRole role) {
    if (!role.defines) return refreshEvent(id);
    storeEvent(id);
    event_raises_[id] = raises_.size();
  });
  return StreamClocks::order(op, stream);
}

void RaceState::post(TokenId token, int32_t post, const VectorClock& start) {
  storeToken(token);
  token_raises_.at(token) = raises_.size();
  StreamClocks::post(token, post, start);
}

// --- branches --------------------------------------------------------------------------------

void RaceState::beginBranch() {
  Branch branch;
  branch.before = {streams, last_work, work_time, {}, {}, {}};
  branch.posts_before = post_step.size();
  branches_.push_back(std::move(branch));
}

void RaceState::beginOtherwise() {
  Branch& branch = branches_.back();
  Values& then = branch.then;
  then = {streams, last_work, work_time, {}, {}, {}};
  for (auto& [id, value] : branch.before.events) {
    then.events[id] = {std::exchange(events[id], value.clock), event_raises_[id]};
    event_raises_[id] = value.raises;
  }
  for (auto& [id, value] : branch.before.tokens) {
    then.tokens[id] = {std::exchange(tokens[id], value.clock), token_raises_[id]};
    token_raises_[id] = value.raises;
  }
  for (auto& [id, value] : branch.before.buffers) {
    then.buffers[id] = std::exchange(buffers[id], value);
  }
  const IdVector<StreamId, int32_t> times_then = times();
  streams = branch.before.streams;
  last_work = branch.before.last_work;
  work_time = branch.before.work_time;
  branch.posts_then = post_step.size();
  raises_.push_back({times(), times_then, branch.posts_before, branch.posts_then});
  for (VectorClock& clock : streams) raises_.back().apply(clock);
}

BufferId RaceState::endBranch() {
  Branch branch = std::move(branches_.back());
  branches_.pop_back();
  // The clocks of the second body count all work of the first body as completed. Before the clocks
  // of both bodies are merged, the clocks of the first body must count all work of the second body.
  IdVector<StreamId, int32_t> times_then;
  for (StreamId s : streams.ids()) times_then.push_back(branch.then.streams[s].streams[s]);
  const Raise raise{std::move(times_then), times(), branch.posts_then, post_step.size()};
  mergeStreams(branch, raise);
  mergeEvents(branch, raise);
  mergeTokens(branch, raise);
  raises_.pop_back();
  return mergeBuffers(branch);
}

void RaceState::mergeStreams(const Branch& branch, const Raise& raise) {
  for (StreamId s : streams.ids()) {
    VectorClock then = branch.then.streams[s];
    raise.apply(then);
    then.meet(streams[s]);
    streams[s] = std::move(then);
    if (branch.then.work_time[s] >= work_time[s]) {
      work_time[s] = branch.then.work_time[s];
      last_work[s] = branch.then.last_work[s];
    }
  }
}

void RaceState::mergeEvents(const Branch& branch, const Raise& raise) {
  const size_t outer = raises_.size() - 1;  // number of raises after the branch
  for (const auto& [id, before] : branch.before.events) {
    if (!branches_.empty()) branches_.back().before.events.try_emplace(id, before);
    refreshEvent(id);
    const std::optional<VectorClock> otherwise = std::move(events[id]);
    StoredEvent then = valueOr(branch.then.events, id, before);
    for (; then.clock && then.raises < outer; ++then.raises)
      raises_[then.raises].apply(*then.clock);
    if (then.clock) raise.apply(*then.clock);
    if (!otherwise) then.clock.reset();
    if (then.clock) then.clock->meet(*otherwise);
    events[id] = std::move(then.clock);
    event_raises_[id] = outer;
  }
}

void RaceState::mergeTokens(const Branch& branch, const Raise& raise) {
  const size_t outer = raises_.size() - 1;
  for (const auto& [id, before] : branch.before.tokens) {
    if (!branches_.empty()) branches_.back().before.tokens.try_emplace(id, before);
    refreshToken(id);
    const TokenClock theirs = std::move(tokens[id]);
    StoredToken then = valueOr(branch.then.tokens, id, before);
    for (; then.raises < outer; ++then.raises) raises_[then.raises].apply(then.clock.start);
    TokenClock& mine = then.clock;
    raise.apply(mine.start);
    mine.start.meet(theirs.start);
    // After the branch, a token may represent a post of either body. A post from before the branch
    // remains only if the token represents it after both bodies.
    std::vector<int32_t> both;
    for (int32_t post : mine.posts) {
      if (contains(theirs.posts, post) || within(post, branch.posts_before, branch.posts_then)) {
        both.push_back(post);
      }
    }
    for (int32_t post : theirs.posts) {
      if (within(post, branch.posts_then, post_step.size())) both.push_back(post);
    }
    mine.posts = std::move(both);
    tokens[id] = std::move(mine);
    token_raises_[id] = outer;
  }
}

BufferId RaceState::mergeBuffers(Branch& branch) {
  for (auto& [id, before] : branch.before.buffers) {
    RaceBuffer theirs = std::move(buffers[id]);
    RaceBuffer mine = valueOr(branch.then.buffers, id, before);
    const bool here = mine.allocated >= 0, there = theirs.allocated >= 0;
    const bool live_here = here && mine.freed < 0, live_there = there && theirs.freed < 0;
    if (live_here != live_there) return id;
    if (!here) mine = theirs;
    const size_t own = mine.accesses.size();
    for (RaceAccess& access : theirs.accesses) {
      const bool known = std::any_of(
          mine.accesses.begin(), mine.accesses.begin() + static_cast<ptrdiff_t>(own),
          [&](const RaceAccess& each) {
            return each == access || (access.step != theirs.allocated && covers(each, access));
          });
      if (!known) mine.accesses.push_back(access);
    }
    buffers[id] = std::move(before);
    changed(id) = std::move(mine);
  }
  return BufferId();
}

}  // namespace heddle::host
