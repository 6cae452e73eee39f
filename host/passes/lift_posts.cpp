#include "host/passes/lift_posts.h"

#include <algorithm>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/program/visit.h"

namespace heddle::host {
namespace {

bool names(const Communicate& post, SlotId slot) {
  bool found = false;
  forEachSlot(post, [&](SlotId named, FieldRole) { found = found || named == slot; });
  return found;
}

// Returns whether `x` defines a slot that `post` names.
bool definesFor(const Instruction& x, const Communicate& post) {
  bool found = false;
  forEachSlotInside(x, [&](SlotId slot, FieldRole role) {
    found = found || (role.defines && names(post, slot));
  });
  return found;
}

bool orders(const Instruction& x) {
  const InstructionKind kind = kindOf(x.op);
  return kind == InstructionKind::Post || kind == InstructionKind::Order ||
         kind == InstructionKind::Control;
}

// Returns whether the Allocate of the output of `post` may move together with `post`: `x` is this
// Allocate, and `post` has one pair of buffers, with different slots for input and output.
bool allocates(const Instruction& x, const Communicate& post) {
  // Only an Allocate creates a buffer.
  const auto* made = std::get_if<Allocate>(&x.op);
  return made != nullptr && made->out == post.out && post.in != post.out && post.also.empty();
}

// Returns whether instruction number `x` is a Wait for an earlier post that does not conflict with
// `item`.
bool waitsForAnother(const Program& program, const BufferAccesses& items, size_t x,
                     const Item& item) {
  // Only a Wait waits for a post.
  const auto* wait = std::get_if<Wait>(&program.body[x].op);
  if (wait == nullptr) return false;
  for (size_t i = x; i-- > 0;) {
    if (items.items[i].posts == wait->token) return !items.conflict(items.items[i], item);
  }
  return false;
}

}  // namespace

Program liftPosts(Program program) {
  BufferAccesses items = bufferAccessesOf(program);
  if (!isUnordered(program, items)) return program;
  auto& body = program.body;
  const auto lift = [&](size_t from, size_t to) {
    std::rotate(body.begin() + to, body.begin() + from, body.begin() + from + 1);
    std::rotate(items.items.begin() + to, items.items.begin() + from,
                items.items.begin() + from + 1);
  };
  for (size_t i = 0; i < body.size(); ++i) {
    // Only Communicate posts here: isUnordered() is false for programs with Send and Recv.
    const auto* found = std::get_if<Communicate>(&body[i].op);
    if (found == nullptr) continue;
    const Communicate post = *found;
    // Only a Communicate of the kind Send may move past waits. A stage of a pipeline-parallel
    // program should send its result before it waits for the results of other stages.
    const bool is_send = post.kind == comm::CollectiveKind::Send;
    if (body[i].on.valid() && !is_send) continue;
    const auto stops = [&](size_t at) {
      if (is_send && waitsForAnother(program, items, at, items.items[i])) return false;
      return orders(body[at]);
    };
    const bool own = i > 0 && allocates(body[i - 1], post);
    const size_t first = own ? i - 1 : i;
    size_t to = first;
    while (to > 0 && !stops(to - 1) && !items.conflict(items.items[to - 1], items.items[i]) &&
           !definesFor(body[to - 1], post)) {
      --to;
    }
    if (to == first) continue;
    // The Allocate moves first, so that it stays before the Communicate.
    if (own) lift(first, to++);
    lift(i, to);
  }
  return program;
}

}  // namespace heddle::host
