#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/unroll/unroll.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// One access that a later one may still race with.
struct RaceAccess {
  int64_t begin = 0;
  int64_t end = 0;
  bool write = false;
  int32_t step = -1;  // of the unrolled program; -1: the caller, before the run
  StreamId stream = 0;
  int32_t time = 0;   // on the stream
  int32_t post = -1;  // >= 0: done when this post is, whatever the stream says
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

// All that is known at one place of an unrolled program. The checker copies it where a branch
// decided at run time begins.
struct RaceState : StreamClocks {
  std::vector<RaceBuffer> buffers;
  std::vector<int32_t> last_work;  // per stream: step, or -1
  std::vector<int32_t> work_time;  // per stream: its time
  std::vector<int32_t> post_step;  // per post

  RaceState(size_t stream_count, size_t token_count, size_t event_count, size_t buffer_count);

  // The two branches from one place: `then` ran first in the unrolled program, `otherwise` began
  // with what was known before it. What one branch did counts as done in the other, where it does
  // not exist.
  void beginOtherwise(const RaceState& then);
  // Into `then`. Returns the buffer that only one of the branches frees or leaves behind, or -1.
  int32_t merge(RaceState otherwise, size_t posts_before, size_t posts_then);

 private:
  // Clocks that know stream s up to `from` know it up to `to`; posts [first, last) are done.
  void raise(const std::vector<int32_t>& from, const std::vector<int32_t>& to, size_t first,
             size_t last);
  std::vector<int32_t> times() const;
};

}  // namespace heddle::host
