#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/unroll/unroll.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// An access to a buffer. A later access may still race with it. Two accesses race if they overlap,
// at least one of them writes, and nothing determines their order.
struct RaceAccess {
  int64_t begin = 0;  // the access is to the bytes [begin, end) of the buffer
  int64_t end = 0;
  bool write = false;
  int32_t step = -1;  // index of the step of the unrolled program; -1: an access of the caller
  StreamId stream = kCallerStream;
  int32_t time = 0;   // number of the step on its stream
  int32_t post = -1;  // number of the post that accesses the buffer; -1: the step itself
  bool operator==(const RaceAccess&) const = default;

  // Returns whether the access has certainly completed according to `clock`.
  bool happensBefore(const VectorClock& clock) const {
    return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
  }
};

struct RaceBuffer {
  int32_t allocated = -1;  // the step that allocates the buffer; -1: not allocated yet
  int32_t freed = -1;      // the step that frees the buffer; -1: not freed yet
  std::vector<RaceAccess> accesses;
};

// The knowledge of the race checker (host/verify/check_races.cpp) at one point of an unrolled
// program (host/unroll/unroll.h). If the run decides a branch, the checker copies the state before
// the branch, and checks both bodies from the same state.
struct RaceState : StreamClocks {
  IdVector<BufferId, RaceBuffer> buffers;
  IdVector<StreamId, int32_t> last_work;  // last step that is neither a post nor a Free; -1: none
  IdVector<StreamId, int32_t> work_time;  // the time of this step
  std::vector<int32_t> post_step;         // per posted operation: the step that posts it

  RaceState(size_t stream_count, size_t token_count, size_t event_count, size_t buffer_count);

  // Prepares this state for the check of the second body. Before the call, this state must be a
  // copy of the state before the branch. `then` is the state after the first body. All work of the
  // first body counts as completed, because a run executes only one of the bodies.
  void beginOtherwise(const RaceState& then);
  // Turns this state into the state after the branch. Before the call, this state must be the state
  // after the first body; `otherwise` is the state after the second body. The result contains only
  // knowledge that is certain after both bodies. The posts [posts_before, posts_then) belong to the
  // first body, later posts to the second body. Returns a buffer that is live at the end of only
  // one body, or an invalid id if there is none.
  BufferId merge(RaceState otherwise, size_t posts_before, size_t posts_then);

 private:
  // Marks the work of a body as completed. For each stream s, raises the time of s to to[s] in
  // every clock in which this time is at least from[s]. Adds the posts [first, last) to all clocks.
  void raise(const IdVector<StreamId, int32_t>& from, const IdVector<StreamId, int32_t>& to,
             size_t first, size_t last);
  IdVector<StreamId, int32_t> times() const;  // the time of the last step of each stream
};

}  // namespace heddle::host
