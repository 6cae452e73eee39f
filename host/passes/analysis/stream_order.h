#pragma once

#include <map>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// Executes the items of a program symbolically, in order. After each item, it knows for each stream
// the earlier accesses after which the stream is ordered. An item is a top-level instruction
// (buffer_accesses.h). checkRaces() has the same rules but needs sizes; this class compares buffers
// and their parts (BufferAccesses) without sizes. Opaque items are ignored.
class StreamOrder {
 public:
  // An access that later accesses may have to wait for.
  struct Done {
    ItemAccess access;
    size_t item;
    StreamId stream;
    int32_t time;
    int32_t post;  // number of the post; -1: the access is not a post
    bool knownTo(const VectorClock& clock) const {
      return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
    }
  };

  // Done::item of the caller's accesses. They are on stream 0, before the first item.
  static constexpr size_t kBegin = static_cast<size_t>(-1);

  StreamOrder(const Program& program, const BufferAccesses& items);

  // Returns the past accesses for which item `i` must still wait. They conflict with the item, and
  // its stream is not ordered after them.
  std::vector<Done> missing(size_t i) const;
  // Returns the accesses for which stream 0 must still wait at the end of the program: all posts
  // and the last work of each stream, unless stream 0 is already ordered after them.
  std::vector<Done> missingAtEnd() const;
  // Returns an access to the root after which stream 0 is not ordered; nullptr: there is none.
  const Done* firstUnknown(RootId root) const;

  void step(size_t i);  // executes item i; call for all items in order

  VectorClock& clock(StreamId stream) { return clocks_.of(stream); }
  // Returns the clock of the stream right after the access. For a post, it is the clock at the
  // start of the post, and it includes the post itself.
  const VectorClock& after(const Done& done) const {
    return done.item == kBegin ? begin_ : after_.at(done.item);
  }
  // Returns the token that still denotes the post, or -1 if the token has been posted again.
  TokenId tokenOf(int32_t post) const;

 private:
  void remember(size_t i, const Item& item, int32_t time, int32_t post, const VectorClock& clock);

  const Program& program_;
  const BufferAccesses& items_;
  StreamClocks clocks_;
  VectorClock begin_;
  std::vector<VectorClock> after_;       // per item
  std::vector<int32_t> latest_post_;     // per token
  std::vector<size_t> post_item_;        // per post
  std::vector<std::vector<Done>> done_;  // per root
  std::map<StreamId, Done> last_;        // per stream other than 0
};

}  // namespace heddle::host
