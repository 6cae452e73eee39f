#include "host/passes/analysis/stream_order.h"

#include <algorithm>

namespace heddle::host {

StreamOrder::StreamOrder(const Program& program, const BufferAccesses& items)
    : program_(program),
      items_(items),
      clocks_(program.streams(), program.tokens.size(), program.events.size()),
      after_(program.body.size()),
      latest_post_(program.tokens.size(), -1),
      done_(items.allocate.size()) {
  begin_ = clocks_.streams.front();
  for (RootId root : items.inputs) {
    done_[root].push_back({{root, true}, kBegin, kCallerStream, 1, -1});
  }
}

std::vector<StreamOrder::Done> StreamOrder::missing(size_t i) const {
  std::vector<Done> out;
  const Item& item = items_.items[i];
  if (!item.stream.valid()) return out;
  const VectorClock& clock = clocks_.streams[item.stream];
  for (const ItemAccess& access : item.accesses) {
    for (const Done& done : done_[access.root]) {
      if ((access.write || done.access.write) && items_.mayOverlap(access, done.access) &&
          !done.knownTo(clock)) {
        out.push_back(done);
      }
    }
  }
  return out;
}

std::vector<StreamOrder::Done> StreamOrder::missingAtEnd() const {
  std::vector<Done> out;
  const VectorClock& clock = clocks_.streams.front();
  for (size_t post = 0; post < post_item_.size(); ++post) {
    const auto id = static_cast<int32_t>(post);
    if (!clock.knowsPost(id))
      out.push_back({{RootId(), true}, post_item_[post], StreamId(), 0, id});
  }
  for (const auto& [stream, done] : last_) {
    if (!done.knownTo(clock)) out.push_back(done);
  }
  return out;
}

const StreamOrder::Done* StreamOrder::firstUnknown(RootId root) const {
  const auto& done = done_[root];
  const auto unknown = std::find_if(
      done.begin(), done.end(), [&](const Done& d) { return !d.knownTo(clocks_.streams.front()); });
  return unknown == done.end() ? nullptr : &*unknown;
}

TokenId StreamOrder::tokenOf(int32_t post) const {
  const TokenId token = items_.items[post_item_.at(post)].posts;
  return latest_post_[token] == post ? token : TokenId();
}

void StreamOrder::step(size_t i) {
  const Item& item = items_.items[i];
  const Op& op = program_.body[i].op;
  if (!item.stream.valid() || item.opaque) return;
  if (clocks_.order(op, item.stream)) return;
  VectorClock& clock = clocks_.of(item.stream);
  const int32_t time = ++clock.streams[item.stream];
  int32_t post = -1;
  VectorClock after = clock;
  if (item.posts.valid()) {
    post = static_cast<int32_t>(post_item_.size());
    post_item_.push_back(i);
    latest_post_[item.posts] = post;
    clocks_.post(item.posts, post, clock);
    after.addPost(post);
  }
  remember(i, item, time, post, clock);
  // The end of the program on the caller's stream must be ordered after all work except Free
  // instructions.
  if (post < 0 && item.stream != kCallerStream && !std::holds_alternative<Free>(op)) {
    last_[item.stream] = {{RootId(), true}, i, item.stream, time, -1};
  }
  after_[i] = std::move(after);
}

void StreamOrder::remember(size_t i, const Item& item, int32_t time, int32_t post,
                           const VectorClock& clock) {
  for (const ItemAccess& access : item.accesses) {
    auto& list = done_[access.root];
    // An older access is redundant if it has completed when the new access begins, and if every
    // later access that must wait for it must also wait for the new access.
    std::erase_if(list, [&](const Done& old) {
      return old.knownTo(clock) && (access.write || !old.access.write) &&
             BufferAccesses::covers(access, old.access);
    });
    list.push_back({access, i, item.stream, time, post});
  }
}

}  // namespace heddle::host
