#pragma once

#include <map>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// Determines which accesses to buffers have certainly completed before the next work on a stream.
// The class walks over the items of a host program in order. An item is a top-level instruction; a
// root is a buffer (both in buffer_accesses.h). The class follows the rules of checkRaces()
// (host/verify/check_races.h), but needs no sizes. step() ignores opaque items (Item::opaque),
// which the author of the program has ordered.
//
// A VectorClock (host/verify/happens_before.h) is a set of work that has certainly completed. It
// contains the position of the last completed item on each stream, and the posted operations that
// have completed.
class StreamOrder {
 public:
  // An access for which later accesses may have to wait.
  struct Done {
    ItemAccess access;
    size_t item;  // the item that accesses the buffer
    StreamId stream;
    int32_t time;  // position of the item in the order of its stream (VectorClock)
    int32_t post;  // number of the posted operation that makes the access; -1: the item itself
    bool knownTo(const VectorClock& clock) const {
      return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
    }
  };

  // Value of Done::item for work that the caller enqueued on kCallerStream before the program.
  static constexpr size_t kBegin = static_cast<size_t>(-1);

  StreamOrder(const Program& program, const BufferAccesses& items);

  // Returns the past accesses that conflict with item `i` and that may still run when the stream of
  // item `i` reaches the item.
  std::vector<Done> missing(size_t i) const;
  // Returns the posted operations, and the last work of each other stream, that may still run when
  // kCallerStream reaches the end of the program. Done::access of the results names no root.
  std::vector<Done> missingAtEnd() const;
  // Returns a past access to the root that may still run when stream 0 begins its next work.
  // Returns nullptr if there is no such access.
  const Done* firstUnknown(RootId root) const;

  // Advances over item `i`. Call this for all items, in order.
  void step(size_t i);

  VectorClock& clock(StreamId stream) { return clocks_.of(stream); }
  // Returns all work that has certainly completed when the access has completed.
  const VectorClock& after(const Done& done) const {
    return done.item == kBegin ? begin_ : after_.at(done.item);
  }
  // Returns the token of the posted operation. Returns an invalid id if a later operation has been
  // posted with the same token.
  TokenId tokenOf(int32_t post) const;

 private:
  void remember(size_t i, const Item& item, int32_t time, int32_t post, const VectorClock& clock);

  const Program& program_;
  const BufferAccesses& items_;
  StreamClocks clocks_;
  VectorClock begin_;
  std::vector<VectorClock> after_;          // per item: the result of after()
  IdVector<TokenId, int32_t> latest_post_;  // number of the latest post; -1: none
  std::vector<size_t> post_item_;           // per post: the item that posts it
  IdVector<RootId, std::vector<Done>> done_;
  std::map<StreamId, Done> last_;  // last work of each stream other than kCallerStream
};

}  // namespace heddle::host
