#pragma once

#include <cstdint>
#include <vector>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/verify/happens_before.h"

namespace heddle::host {

// Determines which accesses to buffers have certainly completed when a later access begins. The
// class follows the rules of checkRaces() (host/verify/check_races.h), but needs no sizes. An item
// is a top-level instruction (buffer_accesses.h). Requires that no item of the program is opaque
// (Item::opaque).
class AccessOrder {
 public:
  // An access of an item to a buffer. Allocate and Free are not uses. A VectorClock is a set of
  // work that has certainly completed (host/verify/happens_before.h).
  struct Use {
    size_t item;
    StreamId stream;
    int32_t time;  // position of the item in the order of its stream (VectorClock)
    int32_t post;  // number of the posted operation that makes the access; -1: the item itself
  };

  AccessOrder(const Program& program, const BufferAccesses& items);

  // Returns the uses of a buffer in the order of the program.
  const std::vector<Use>& usesOf(RootId root) const { return uses_[root]; }
  // Returns whether `a` has certainly completed when the stream of `b` reaches `b`.
  bool happensBefore(const Use& a, const Use& b) const {
    const VectorClock& clock = before_[b.item];
    return a.post >= 0 ? clock.knowsPost(a.post) : clock.knowsStep(a.stream, a.time);
  }

 private:
  std::vector<VectorClock> before_;  // per item with uses: the clock of its stream before the item
  IdVector<RootId, std::vector<Use>> uses_;
};

}  // namespace heddle::host
