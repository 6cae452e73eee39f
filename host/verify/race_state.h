#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/unroll/unroll.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// An access to a buffer that a later access may still race with.
struct RaceAccess {
  int64_t begin = 0;
  int64_t end = 0;
  bool write = false;
  int32_t step = -1;  // of the unrolled program; -1: by the caller, before the run
  StreamId stream = kCallerStream;
  int32_t time = 0;   // on the stream
  int32_t post = -1;  // >= 0: the access ends with this post, not at `time`
  bool operator==(const RaceAccess&) const = default;

  bool happensBefore(const VectorClock& clock) const {
    return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
  }
};

struct RaceBuffer {
  int32_t allocated = -1;  // step; -1: not yet
  int32_t freed = -1;
  std::vector<RaceAccess> accesses;
};

// Everything that the race checker knows at one point of an unrolled program. The checker copies it
// at the beginning of a branch that the run decides, and walks both bodies from the same state.
struct RaceState : StreamClocks {
  IdVector<BufferId, RaceBuffer> buffers;
  IdVector<StreamId, int32_t> last_work;  // step, or -1
  IdVector<StreamId, int32_t> work_time;  // its time
  std::vector<int32_t> post_step;         // per post

  RaceState(size_t stream_count, size_t token_count, size_t event_count, size_t buffer_count);

  // Prepares this state, a copy from before the branch, for the walk over the second body. `then`
  // is the state after the first body. All work of the first body counts as completed, because only
  // one of the bodies runs.
  void beginOtherwise(const RaceState& then);
  // Turns this state, which is the state after the first body, into the state after the branch. It
  // keeps only what is certain after both bodies. `otherwise` is the state after the second body.
  // Posts from `posts_before` to `posts_then` belong to the first body, later ones to the second.
  // Returns a buffer that is allocated at the end of only one body, or an invalid id.
  BufferId merge(RaceState otherwise, size_t posts_before, size_t posts_then);

 private:
  // Raises the time of stream s to to[s] in each clock where it is at least from[s]. Adds the posts
  // [first, last) to all clocks.
  void raise(const IdVector<StreamId, int32_t>& from, const IdVector<StreamId, int32_t>& to,
             size_t first, size_t last);
  IdVector<StreamId, int32_t> times() const;  // of each stream: the time of its last step
};

}  // namespace heddle::host
