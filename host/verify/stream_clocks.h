#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/program/program.h"
#include "host/verify/happens_before.h"

namespace heddle::host {

// What a stream knows after a Wait on a token: these posts have completed, and everything that
// `start` knows has happened.
struct TokenClock {
  std::vector<int32_t> posts;
  VectorClock start;
};

// What streams, events and tokens know at one point of a program. The race checker and the passes
// that insert waits and frees use the same rules to advance it.
struct StreamClocks {
  IdVector<StreamId, VectorClock> streams;
  IdVector<EventId, std::optional<VectorClock>> events;  // nullopt: not recorded yet
  IdVector<TokenId, TokenClock> tokens;                  // without posts: a Wait changes nothing

  // The caller's work comes first on stream 0, at time 1. No other stream is ordered after it.
  StreamClocks(size_t stream_count, size_t token_count, size_t event_count);

  VectorClock& of(StreamId stream) { return streams[stream]; }
  // Applies a Wait, RecordEvent or WaitEvent on `stream` and returns true. Returns false for every
  // other instruction and does nothing.
  bool order(const Op& op, StreamId stream);
  // Assigns the post `post`, which started after `start`, to the token in place of earlier ones.
  void post(TokenId token, int32_t post, const VectorClock& start);
};

}  // namespace heddle::host
