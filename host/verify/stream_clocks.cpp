#include "host/verify/stream_clocks.h"

#include "host/program/visit.h"

namespace heddle::host {

StreamClocks::StreamClocks(size_t stream_count, size_t token_count, size_t event_count)
    : streams(stream_count, VectorClock(stream_count)),
      events(event_count),
      tokens(token_count, TokenClock{{}, VectorClock(stream_count)}) {
  streams.front().streams[kCallerStream] = 1;
}

bool StreamClocks::order(const Op& op, StreamId stream) {
  if (kindOf(op) != InstructionKind::Order) return false;
  VectorClock& clock = of(stream);
  forEachToken(op, [&](TokenId id, FieldRole) {
    const TokenClock& token = tokens.at(id);
    if (token.posts.empty()) return;
    clock.join(token.start);
    for (int32_t post : token.posts) clock.addPost(post);
  });
  forEachFieldOfKind<FieldKind::EventUse>(op, [&](EventId id, FieldRole role) {
    std::optional<VectorClock>& event = events.at(id);
    if (role.defines) {
      event = clock;
    } else if (event) {
      clock.join(*event);
    }
  });
  return true;
}

void StreamClocks::post(TokenId token, int32_t post, const VectorClock& start) {
  tokens.at(token) = {{post}, start};
}

}  // namespace heddle::host
