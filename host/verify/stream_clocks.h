#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/program/program.h"
#include "host/verify/happens_before.h"

namespace heddle::host {

// The work that has certainly completed after a Wait on a token.
struct TokenClock {
  std::vector<int32_t> posts;  // the posts that the token may represent; several after a branch
  // The clock (host/verify/happens_before.h) at the post. Several posts: only what their clocks
  // have in common.
  VectorClock start;
};

// The clocks of all streams, events and tokens at one point of a host program. A clock says which
// work has certainly completed (VectorClock). The race checker and the passes that insert waits and
// frees use this struct, so they follow the same rules.
struct StreamClocks {
  IdVector<StreamId, VectorClock> streams;
  IdVector<EventId, std::optional<VectorClock>> events;  // nullopt: the event is not recorded yet
  IdVector<TokenId, TokenClock> tokens;  // before a post: `posts` is empty, a Wait does nothing

  // Creates the clocks at the start of a program. The work of the caller is on kCallerStream, at
  // time 1. No other stream is ordered after it.
  StreamClocks(size_t stream_count, size_t token_count, size_t event_count);

  VectorClock& of(StreamId stream) { return streams[stream]; }
  // If `op` is a Wait, RecordEvent or WaitEvent on `stream`: updates the clocks and returns true.
  // Otherwise does nothing and returns false.
  bool order(const Op& op, StreamId stream);
  // Makes the token represent the posted operation number `post`, and no longer an earlier
  // operation. `start` is the clock at which this operation was posted.
  void post(TokenId token, int32_t post, const VectorClock& start);
};

}  // namespace heddle::host
