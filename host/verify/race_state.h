#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "host/unroll/unroll.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// An access to a buffer with which a later access may race. Two accesses race if they overlap, at
// least one of them writes, and nothing determines their order.
struct RaceAccess {
  int64_t begin = 0;  // the access is to the bytes [begin, end) of the buffer
  int64_t end = 0;
  bool write = false;
  int32_t step = -1;  // index of the step of the unrolled program; -1: an access of the caller
  StreamId stream = kCallerStream;
  int32_t time = 0;   // number of the step on its stream
  int32_t post = -1;  // number of the posted operation to which the step belongs; -1: none
  bool operator==(const RaceAccess&) const = default;

  // Returns whether the access has certainly completed according to `clock`.
  bool happensBefore(const VectorClock& clock) const {
    return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
  }
};

struct RaceBuffer {
  int32_t allocated = -1;  // the step that allocates the buffer, or 0 for an input; -1: not yet
  int32_t freed = -1;      // the step that frees the buffer; -1: not freed yet
  boost::container::small_vector<RaceAccess, 4> accesses;
};

// What the race checker (host/verify/check_races.cpp) knows at one point of an unrolled program
// (host/unroll/unroll.h): the clocks, and the accesses to each buffer. If the run decides a branch,
// the checker checks both bodies from the same state. To restore this state, it saves the values of
// only those events, tokens and buffers that a body changes. The cost of a branch therefore does
// not depend on the size of the rest of the program.
struct RaceState : StreamClocks {
  IdVector<BufferId, RaceBuffer> buffers;  // use changed() to change an element
  IdVector<StreamId, int32_t> last_work;  // per stream: the last step except posts and Frees, or -1
  IdVector<StreamId, int32_t> work_time;  // the time of the step in last_work (VectorClock)
  std::vector<int32_t> post_step;         // per posted operation: the step that posts it

  RaceState(size_t stream_count, size_t token_count, size_t event_count, size_t buffer_count);

  // order() and post() hide the functions of StreamClocks with the same names. They do the same
  // work. In a branch, they also save the values that they change.
  bool order(const Op& op, StreamId stream);
  void post(TokenId token, int32_t post, const VectorClock& start);
  // Returns the buffer, so that the caller can change it. In a branch, saves its old value first.
  RaceBuffer& changed(BufferId id);

  void beginBranch();  // before the first body
  // Call this between the bodies. A run executes only one of the bodies, so their accesses cannot
  // race with each other. Restores the state from before the branch, but all work of the first body
  // counts as completed.
  void beginOtherwise();
  // Call this after the second body. Keeps only what is certain after both bodies. Returns a buffer
  // that is allocated at the end of only one body, or an invalid id.
  BufferId endBranch();

 private:
  // Makes the clocks of one body of a branch count all work of the other body as completed, because
  // a run executes only one of them. On stream s, the other body begins after time from[s] and ends
  // at time to[s]. A clock that has reached from[s] therefore advances to to[s]. The posts [first,
  // last) of the other body are added.
  struct Raise {
    IdVector<StreamId, int32_t> from;
    IdVector<StreamId, int32_t> to;
    size_t first = 0;
    size_t last = 0;
    void apply(VectorClock& clock) const;
  };
  // The clock of an event or token, and the number of `raises_` that have been applied to it.
  struct StoredEvent {
    std::optional<VectorClock> clock;
    size_t raises = 0;
  };
  struct StoredToken {
    TokenClock clock;
    size_t raises = 0;
  };
  // Values of streams, and of the events, tokens and buffers that a body has changed.
  struct Values {
    IdVector<StreamId, VectorClock> streams;
    IdVector<StreamId, int32_t> last_work;
    IdVector<StreamId, int32_t> work_time;
    std::map<EventId, StoredEvent> events;
    std::map<TokenId, StoredToken> tokens;
    std::map<BufferId, RaceBuffer> buffers;
  };
  struct Branch {
    Values before;            // the values before the branch
    Values then;              // the values after the first body
    size_t posts_before = 0;  // number of posts before the branch
    size_t posts_then = 0;    // number of posts after the first body
  };

  void storeEvent(EventId id);
  void storeToken(TokenId id);
  void refreshEvent(EventId id);
  void refreshToken(TokenId id);
  IdVector<StreamId, int32_t> times() const;  // the time of the last step of each stream
  // The next four functions merge the values after both bodies of a branch. `raise` makes the
  // clocks of the first body count all work of the second body as completed.
  void mergeStreams(const Branch& branch, const Raise& raise);
  void mergeEvents(const Branch& branch, const Raise& raise);
  void mergeTokens(const Branch& branch, const Raise& raise);
  BufferId mergeBuffers(Branch& branch);

  std::vector<Branch> branches_;  // the branches around the current step, the innermost last
  std::vector<Raise> raises_;     // one per branch in whose second body the current step is
  // Per event and token: the number of `raises_` that have been applied to its clock.
  IdVector<EventId, size_t> event_raises_;
  IdVector<TokenId, size_t> token_raises_;
};

}  // namespace heddle::host
