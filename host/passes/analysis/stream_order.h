#pragma once

#include <map>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/verify/stream_clocks.h"

namespace heddle::host {

// What the streams know of each other along the top-level instructions: the rules of checkRaces()
// over buffers and their parts (BufferAccesses), without sizes. An item that is opaque orders
// nothing that is seen here.
class StreamOrder {
 public:
  struct Done {  // one access that later ones may have to wait for
    ItemAccess access;
    size_t item;
    StreamId stream;
    int32_t time;
    int32_t post;  // -1: not a post
    bool knownTo(const VectorClock& clock) const {
      return post >= 0 ? clock.knowsPost(post) : clock.knowsStep(stream, time);
    }
  };

  // Of an access before the first item: the caller's, on stream 0.
  static constexpr size_t kBegin = static_cast<size_t>(-1);

  StreamOrder(const Program& program, const BufferAccesses& items);

  // What of the past item `i` conflicts with and its stream does not know.
  std::vector<Done> missing(size_t i) const;
  // What stream 0 does not know of all that was done.
  std::vector<Done> missingAtEnd() const;
  // What stream 0 does not know of the accesses to one root.
  bool isKnown(RootId root) const;

  void step(size_t i);  // item i happens; call in order

  VectorClock& clock(StreamId stream) { return clocks_.of(stream); }
  // What is known on its stream right after a done item; at a post: before it began, and itself.
  const VectorClock& after(const Done& done) const {
    return done.item == kBegin ? begin_ : after_.at(done.item);
  }
  // The token by which the post can still be waited for, or -1.
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
