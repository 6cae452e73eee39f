#pragma once

#include <map>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// Determines which accesses to buffers have certainly happened before the next work on a stream.
// The class walks over the items of a host program in order. An item is a top-level instruction; a
// root is a buffer (both in buffer_accesses.h). After each item, the class knows for each stream
// which earlier accesses must complete before the next work on the stream begins. checkRaces()
// (host/verify/verify.h) has the same rules but needs sizes. This class compares buffers and parts
// of buffers without sizes. It ignores opaque items (Item::opaque).
class StreamOrder {
 public:
  // An access for which later accesses may have to wait.
  struct Done {
    ItemAccess access;
    size_t item;  // the item that accesses the buffer
    StreamId stream;
    int32_t time;  // time of the access on its stream (VectorClock)
    int32_t post;  // number of the posted operation that accesses the buffer; -1: no operation
    bool knownTo(const VectorClock& clock) const {
      return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
    }
  };

  // Value of Done::item for the accesses of the caller, on kCallerStream before the first item.
  static constexpr size_t kBegin = static_cast<size_t>(-1);

  StreamOrder(const Program& program, const BufferAccesses& items);

  // Returns the past accesses for which item `i` must still wait: those that conflict with the item
  // and after which the stream of the item is not ordered.
  std::vector<Done> missing(size_t i) const;
  // Returns the work for which kCallerStream must still wait at the end of the program.
  // kCallerStream must be ordered after all posts and after the last work of each stream.
  std::vector<Done> missingAtEnd() const;
  // Returns an access to the root after which stream 0 is not ordered; nullptr: there is none.
  const Done* firstUnknown(RootId root) const;

  // Advances over item `i`. Call this for all items, in order.
  void step(size_t i);

  VectorClock& clock(StreamId stream) { return clocks_.of(stream); }
  // Returns the clock that the stream of the access had right after the access. A clock says which
  // work has certainly completed (VectorClock in host/verify/happens_before.h). If the access is by
  // a posted operation, the result is the clock at which the operation was posted, plus the
  // operation itself.
  const VectorClock& after(const Done& done) const {
    return done.item == kBegin ? begin_ : after_.at(done.item);
  }
  // Returns the token that represents the posted operation. Returns an invalid id if a later
  // operation has been posted with the same token.
  TokenId tokenOf(int32_t post) const;

 private:
  void remember(size_t i, const Item& item, int32_t time, int32_t post, const VectorClock& clock);

  const Program& program_;
  const BufferAccesses& items_;
  StreamClocks clocks_;
  VectorClock begin_;
  std::vector<VectorClock> after_;          // per item
  IdVector<TokenId, int32_t> latest_post_;  // number of the latest post; -1: none
  std::vector<size_t> post_item_;           // per post: the item that posts it
  IdVector<RootId, std::vector<Done>> done_;
  std::map<StreamId, Done> last_;  // last work of each stream other than kCallerStream
};

}  // namespace heddle::host
