#include "host/passes/analysis/access_order.h"

#include <set>
#include <variant>

#include "host/verify/stream_clocks.h"

namespace heddle::host {

AccessOrder::AccessOrder(const Program& program, const BufferAccesses& items)
    : before_(items.items.size()), uses_(items.allocate.size()) {
  StreamClocks clocks(program.streams(), program.tokens.size(), program.events.size());
  int32_t posts = 0;
  for (size_t i = 0; i < items.items.size(); ++i) {
    const Item& item = items.items[i];
    const Op& op = program.body[i].op;
    if (!item.stream.valid() || clocks.order(op, item.stream)) continue;
    VectorClock& clock = clocks.of(item.stream);
    // Allocate and Free are no uses: they access the buffer, but not its elements.
    const bool is_use = !std::holds_alternative<Allocate>(op) && !std::holds_alternative<Free>(op);
    if (is_use && !item.accesses.empty()) before_[i] = clock;
    const int32_t time = ++clock.streams[item.stream];
    const int32_t post = item.posts.valid() ? posts++ : -1;
    if (post >= 0) clocks.post(item.posts, post, clock);
    std::set<RootId> roots;
    for (const ItemAccess& access : item.accesses) roots.insert(access.root);
    if (!is_use) continue;
    for (RootId root : roots) uses_[root].push_back({i, item.stream, time, post});
  }
}

}  // namespace heddle::host
