#include "host/passes/lift_posts.h"

#include <algorithm>

#include "host/passes/items.h"
#include "host/visit.h"

namespace heddle::host {
namespace {

// Whether `x` gives or takes away the meaning of a slot that `post` names.
bool definesFor(const Instruction& x, const Communicate& post) {
  bool found = false;
  forEachInstruction({x}, [&](const Instruction& inner, InstructionIndex) {
    forEachSlot(inner.op, [&](SlotId slot, bool defines) {
      found = found || (defines && (slot == post.in || slot == post.out ||
                                    slot == post.send_counts || slot == post.recv_counts));
    });
  });
  return found;
}

bool orders(const Instruction& x) {
  return std::holds_alternative<Communicate>(x.op) || std::holds_alternative<Wait>(x.op) ||
         std::holds_alternative<For>(x.op) || std::holds_alternative<If>(x.op);
}

bool allocates(const Instruction& x, const Communicate& post) {
  const auto* made = std::get_if<Allocate>(&x.op);
  return made != nullptr && made->out == post.out && post.in != post.out;
}

}  // namespace

Program liftPosts(Program program) {
  Items items = itemsOf(program);
  if (!isUnordered(program, items)) return program;
  auto& body = program.body;
  const auto lift = [&](size_t from, size_t to) {
    std::rotate(body.begin() + to, body.begin() + from, body.begin() + from + 1);
    std::rotate(items.items.begin() + to, items.items.begin() + from,
                items.items.begin() + from + 1);
  };
  for (size_t i = 0; i < body.size(); ++i) {
    const auto* found = std::get_if<Communicate>(&body[i].op);
    if (found == nullptr || body[i].on >= 0) continue;
    const Communicate post = *found;
    const bool own = i > 0 && allocates(body[i - 1], post);
    const size_t first = own ? i - 1 : i;
    size_t to = first;
    while (to > 0 && !orders(body[to - 1]) && !conflict(items.items[to - 1], items.items[i]) &&
           !definesFor(body[to - 1], post)) {
      --to;
    }
    if (to == first) continue;
    if (own) lift(first, to++);
    lift(i, to);
  }
  return program;
}

}  // namespace heddle::host
