#include "host/passes/insert_frees.h"

#include <algorithm>
#include <map>
#include <set>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/stream_order.h"
#include "host/program/visit.h"

namespace heddle::host {
namespace {

// --- the top level -------------------------------------------------------------------------------

// The buffers whose last use has been visited, but which stream 0 cannot free yet, because it is
// not ordered after all of their accesses. Each buffer is stored with one access after which stream
// 0 is not ordered yet. The buffer is examined again only when stream 0 is ordered after this
// access. This keeps the pass fast if many buffers wait.
class WaitingBuffers {
 public:
  explicit WaitingBuffers(StreamOrder& order) : order_(order) {}

  void add(RootId root) { wait({next_++, root}); }

  // Removes and returns the buffers that stream 0 can free now, in the order of add().
  std::vector<RootId> takeKnown() {
    const VectorClock& clock = order_.clock(kCallerStream);
    std::vector<Waiting> examined = std::move(known_);
    known_.clear();
    clock.posts.forEachKnown(by_post_, [&](std::vector<Waiting>& list) {
      examined.insert(examined.end(), list.begin(), list.end());
    });
    for (auto& [stream, by_time] : by_stream_) {
      const auto end = by_time.upper_bound(clock.streams[stream]);
      for (auto each = by_time.begin(); each != end; ++each) examined.push_back(each->second);
      by_time.erase(by_time.begin(), end);
    }
    for (const Waiting& each : examined) wait(each);
    return take(known_);
  }

  std::vector<RootId> takeAll() {
    for (auto& [post, list] : by_post_) known_.insert(known_.end(), list.begin(), list.end());
    for (auto& [stream, by_time] : by_stream_) {
      for (auto& [time, each] : by_time) known_.push_back(each);
    }
    return take(known_);
  }

 private:
  using Waiting = std::pair<size_t, RootId>;  // the number of the call of add(), and the buffer

  // Stores the buffer with an access after which stream 0 is not ordered. If there is no such
  // access, stores the buffer in known_.
  void wait(const Waiting& each) {
    const StreamOrder::Done* unknown = order_.firstUnknown(each.second);
    if (unknown == nullptr) {
      known_.push_back(each);
    } else if (unknown->post >= 0) {
      by_post_[unknown->post].push_back(each);
    } else {
      by_stream_[unknown->stream].emplace(unknown->time, each);
    }
  }

  static std::vector<RootId> take(std::vector<Waiting>& list) {
    std::sort(list.begin(), list.end());
    std::vector<RootId> roots;
    for (const Waiting& each : list) roots.push_back(each.second);
    list.clear();
    return roots;
  }

  StreamOrder& order_;
  size_t next_ = 0;
  std::vector<Waiting> known_;
  std::map<int32_t, std::vector<Waiting>> by_post_;
  std::map<StreamId, std::multimap<int32_t, Waiting>> by_stream_;
};

// Frees the buffers that instructions at the top level allocate. The first loop finds the last use
// of each buffer. It also finds the buffers that opaque instructions use (Item::opaque: the author
// has ordered these instructions). The function frees neither these buffers nor buffers that the
// program returns or frees. The last loop frees each other buffer as soon as its last use has been
// visited and stream 0 is ordered after all uses. If stream 0 is never ordered after all uses, the
// buffer is freed at the end of the program. A buffer whose slot has been redefined is not freed.
Program freeAtTop(Program program) {
  const BufferAccesses items = bufferAccessesOf(program);
  StreamOrder order(program, items);
  const size_t count = program.body.size();
  std::map<RootId, size_t> last_use, root_at;  // by buffer: indices of last use and Allocate
  std::set<RootId> opaque;
  for (size_t i = 0; i < count; ++i) {
    for (const ItemAccess& access : items.items[i].accesses) {
      last_use[access.root] = i;
      if (items.items[i].opaque) opaque.insert(access.root);
      // Only Allocate creates a buffer.
      if (std::holds_alternative<Allocate>(program.body[i].op)) root_at[access.root] = i;
    }
  }
  std::vector<std::vector<RootId>> ends(count);
  for (const auto& [root, at] : root_at) {
    const bool mine =
        items.returned.count(root) + items.freed.count(root) + opaque.count(root) == 0;
    if (mine) ends[last_use[root]].push_back(root);
  }
  std::vector<Instruction> body;
  // A buffer cannot be freed after its slot has been redefined, because Free names the slot.
  // verify() reports the leak.
  std::map<SlotId, size_t> defined_at;
  const auto stillNamed = [&](RootId root) {
    const SlotId slot = std::get<Allocate>(program.body[root_at[root]].op).out;
    return defined_at[slot] == root_at[root];
  };
  const auto release = [&](const std::vector<RootId>& roots) {
    for (RootId root : roots) {
      if (!stillNamed(root)) continue;
      const Instruction& made = program.body[root_at[root]];
      body.push_back({Free{std::get<Allocate>(made.op).out}, made.on});
    }
  };
  WaitingBuffers waiting(order);
  for (size_t i = 0; i < count; ++i) {
    forEachSlotInside(program.body[i], [&](SlotId slot, FieldRole role) {
      if (role.defines) defined_at[slot] = i;
    });
    order.step(i);
    body.push_back(program.body[i]);
    for (RootId root : ends[i]) {
      if (stillNamed(root)) waiting.add(root);
    }
    release(waiting.takeKnown());
  }
  release(waiting.takeAll());
  program.body = std::move(body);
  return program;
}

// --- bodies --------------------------------------------------------------------------------------

// Returns the slots that an instruction and its bodies name.
std::set<SlotId> slotsOf(const Instruction& x) {
  std::set<SlotId> out;
  forEachSlotInside(x, [&](SlotId id, FieldRole) { out.insert(id); });
  return out;
}

// Frees the buffers that bodies of loops and branches allocate. Only Allocate creates a buffer, and
// only Alias creates a view.
class BodyFrees {
 public:
  explicit BodyFrees(Program& program) : program_(program) {
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
      forEachSlot(x.op, [&](SlotId id, FieldRole) { ++uses_[id]; });
      // Only a Free ends the life of a buffer.
      if (const auto* freed = std::get_if<Free>(&x.op)) taken_.insert(freed->slot);
      if (const auto* alias = std::get_if<Alias>(&x.op)) views_[alias->in].push_back(alias->out);
      if (kindOf(x.op) == InstructionKind::Post ||
          streamOf(x.op).value_or(kCallerStream) != kCallerStream) {
        const std::set<SlotId> slots = slotsOf(x);
        taken_.insert(slots.begin(), slots.end());
      }
    });
    taken_.insert(program.outputs.begin(), program.outputs.end());
    taken_.insert(program.inputs.begin(), program.inputs.end());
  }

  void run() {
    std::vector<std::vector<Instruction>*> lists;
    forEachInstruction(program_.body, [&](Instruction& x, InstructionIndex) {
      forEachBody(x.op, [&](std::vector<Instruction>& body) { lists.push_back(&body); });
    });
    // Inner lists come first, because an insertion into an outer list moves the inner lists in
    // memory and makes the pointers to them invalid.
    for (size_t i = lists.size(); i-- > 0;) list(*lists[i]);
  }

 private:
  // Frees the slots that satisfy all of these conditions:
  //   Exactly one instruction defines the slot: an Allocate of this list, before all other uses.
  //   Only this list and the bodies inside it name the slot and its views.
  //   Neither the slot nor one of its views is in taken_.
  void list(std::vector<Instruction>& body) {
    std::map<SlotId, size_t> last;
    std::map<SlotId, int> here;
    std::map<SlotId, Instruction> made;
    for (size_t i = 0; i < body.size(); ++i) {
      // Only an Allocate creates a buffer.
      if (const auto* x = std::get_if<Allocate>(&body[i].op); x && here[x->out] == 0) {
        made.emplace(x->out, body[i]);
      }
      forEachSlotInside(body[i], [&](SlotId id, FieldRole role) {
        if (role.defines && here[id] > 0) made.erase(id);
        ++here[id];
        last[id] = i;
      });
    }
    std::map<size_t, std::vector<Instruction>> after;
    for (const auto& [slot, allocate] : made) {
      if (here[slot] != uses_[slot] || taken_.count(slot) > 0) continue;
      const bool aliased = views_.count(slot) > 0;  // true: freed at the end of the list
      if (aliased && !aliasesStay(slot, here)) continue;
      after[aliased ? body.size() - 1 : last[slot]].push_back({Free{slot}, allocate.on});
    }
    if (after.empty()) return;
    std::vector<Instruction> out;
    for (size_t i = 0; i < body.size(); ++i) {
      out.push_back(std::move(body[i]));
      for (Instruction& x : after[i]) out.push_back(std::move(x));
    }
    body = std::move(out);
  }

  // Returns whether only this list and the bodies inside it name the slot and all its direct and
  // indirect views. Returns false if one of these slots is in taken_.
  bool aliasesStay(SlotId slot, const std::map<SlotId, int>& here) {
    std::set<SlotId> views{slot};
    for (std::vector<SlotId> todo{slot}; !todo.empty();) {
      const SlotId view = todo.back();
      todo.pop_back();
      const auto found = here.find(view);
      if (found == here.end() || found->second != uses_[view] || taken_.count(view) > 0) {
        return false;
      }
      for (SlotId next : views_[view]) {
        if (views.insert(next).second) todo.push_back(next);
      }
    }
    return true;
  }

  Program& program_;
  std::map<SlotId, int> uses_;  // how often instructions of the program name the slot
  // Inputs, outputs, and slots that a Free, a post or an instruction on a stream other than stream
  // 0 names.
  std::set<SlotId> taken_;
  std::map<SlotId, std::vector<SlotId>> views_;  // per slot: its direct views
};

}  // namespace

Program insertFrees(Program program) {
  BodyFrees(program).run();
  return freeAtTop(std::move(program));
}

}  // namespace heddle::host
