#include "host/passes/items.h"

#include <algorithm>
#include <map>

#include "host/visit.h"

namespace heddle::host {
namespace {

using Roots = std::set<RootId>;

class ItemFinder {
 public:
  explicit ItemFinder(const Program& program)
      : program_(program), roots_of_(program.slots.size()) {}

  Items run() {
    for (SlotId id : program_.inputs) {
      if (slot(id).is_scalar) continue;
      const RootId root = newRoot(nullptr);
      out_.inputs.insert(root);
      roots_of_[static_cast<size_t>(id)] = {root};
    }
    for (const Instruction& x : program_.body) {
      Item item;
      item.stream = streamOf(x.op).value_or(-1);
      if (const auto* post = std::get_if<Communicate>(&x.op)) item.posts = post->token;
      walk(x, item);
      out_.items.push_back(std::move(item));
    }
    for (SlotId id : program_.outputs) {
      const Roots& roots = roots_of_[static_cast<size_t>(id)];
      out_.returned.insert(roots.begin(), roots.end());
    }
    return std::move(out_);
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }

  RootId newRoot(const Instruction* allocate) {
    out_.allocate.push_back(allocate);
    return out_.roots++;
  }

  RootId rootOf(const Instruction& allocate) {
    const auto [found, is_new] = root_of_.try_emplace(&allocate, out_.roots);
    if (is_new) newRoot(&allocate);
    return found->second;
  }

  void walk(const Instruction& x, Item& item) {
    if (const auto* loop = std::get_if<For>(&x.op)) return body({&loop->body}, item);
    if (const auto* branch = std::get_if<If>(&x.op)) {
      return body({&branch->then_body, &branch->else_body}, item);
    }
    visit(x, item, false);
  }

  // A slot may name one of several buffers after a body, which may run never or often.
  void body(std::vector<const std::vector<Instruction>*> lists, Item& item) {
    std::vector<Roots> before;
    do {
      before = roots_of_;
      for (const auto* list : lists) {
        forEachInstruction(*list,
                           [&](const Instruction& x, InstructionIndex) { visit(x, item, true); });
      }
    } while (before != roots_of_);
  }

  void define(SlotId id, Roots roots, bool keep_old) {
    Roots& now = roots_of_[static_cast<size_t>(id)];
    if (keep_old) {
      now.insert(roots.begin(), roots.end());
    } else {
      now = std::move(roots);
    }
  }

  void visit(const Instruction& x, Item& item, bool nested) {
    const Op& op = x.op;
    if (const auto* made = std::get_if<Allocate>(&op))
      define(made->out, {rootOf(x)}, nested || x.on >= 0);
    if (const auto* view = std::get_if<Alias>(&op)) {
      define(view->out, Roots(roots_of_[static_cast<size_t>(view->in)]), nested || x.on >= 0);
    }
    for (const Access& access : accessesOf(op)) {
      if (slot(access.slot).is_scalar) continue;
      for (RootId root : roots_of_[static_cast<size_t>(access.slot)]) {
        item.accesses.insert({root, access.write});
        if (std::holds_alternative<Free>(op)) out_.freed.insert(root);
      }
    }
    const bool point_to_point =
        std::holds_alternative<Send>(op) || std::holds_alternative<Recv>(op) ||
        std::holds_alternative<GroupBegin>(op) || std::holds_alternative<GroupEnd>(op);
    const bool orders = std::holds_alternative<Communicate>(op) ||
                        std::holds_alternative<Wait>(op) ||
                        std::holds_alternative<RecordEvent>(op) ||
                        std::holds_alternative<WaitEvent>(op) || streamOf(op).value_or(0) > 0;
    const auto* post = std::get_if<Communicate>(&op);
    const bool barrier = post != nullptr && post->kind == comm::CollectiveKind::Barrier;
    if (point_to_point || barrier || (nested && orders) || std::holds_alternative<Call>(op))
      item.opaque = true;
    if (nested && streamOf(op)) item.stream = 0;
  }

  const Program& program_;
  Items out_;
  std::vector<Roots> roots_of_;                   // per slot
  std::map<const Instruction*, RootId> root_of_;  // looked up only, never walked
};

}  // namespace

bool Items::anyOpaque() const {
  return std::any_of(items.begin(), items.end(), [](const Item& item) { return item.opaque; });
}

Items itemsOf(const Program& program) { return ItemFinder(program).run(); }

bool conflict(const Item& a, const Item& b) {
  for (const ItemAccess& x : a.accesses) {
    if (b.accesses.count({x.root, true}) > 0) return true;
    if (x.write && b.accesses.count({x.root, false}) > 0) return true;
  }
  return false;
}

bool isUnordered(const Program& program, const Items& items) {
  const bool events =
      std::any_of(program.body.begin(), program.body.end(), [](const Instruction& x) {
        return std::holds_alternative<RecordEvent>(x.op) || std::holds_alternative<WaitEvent>(x.op);
      });
  return !events && !items.anyOpaque();
}

}  // namespace heddle::host
