#include "host/passes/move_items.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/program/visit.h"

namespace heddle::host {
namespace {

// Decides which items of a program depend on each other.
class ItemOrder {
 public:
  explicit ItemOrder(const Program& program)
      : program_(program), items_(bufferAccessesOf(program)), accesses_of_(program.body.size()) {
    std::map<TokenId, size_t> posted;
    for (size_t i = 0; i < program.body.size(); ++i) {
      const Op& op = program.body[i].op;
      // The operation of a post may last until its wait, so a wait has the accesses of its post.
      const auto* wait = std::get_if<Wait>(&op);
      const auto post = wait == nullptr ? posted.end() : posted.find(wait->token);
      accesses_of_[i] = post == posted.end() ? i : post->second;
      if (items_.items[i].posts.valid()) posted[items_.items[i].posts] = i;
      index(i);
    }
  }

  // Calls work(other) for each item that may depend on `item`, and for each item on which `item`
  // may depend. May call it several times for one item, and also for `item` itself.
  template <class Work>
  void forNeighbours(size_t item, const Work& work) const {
    const auto forAll = [&](const std::vector<size_t>& others) {
      for (size_t other : others) work(other);
    };
    for (const ItemAccess& access : accesses(item).accesses) {
      const Users& users = by_root_.at(access.root);
      forAll(users.changing);
      if (access.write) forAll(users.reading);
    }
    const Instruction& x = program_.body[item];
    forEachSlotInside(x, [&](SlotId slot, FieldRole role) {
      const Users& users = by_slot_.at(slot);
      forAll(users.changing);
      if (role.defines) forAll(users.reading);
    });
    forEachToken(x.op, [&](TokenId token, FieldRole) { forAll(by_token_.at(token)); });
    if (kindOf(x.op) == InstructionKind::Post) forAll(posts_);
  }

  // Returns whether item `later` must stay after item `earlier`.
  bool depends(size_t later, size_t earlier) const {
    if (items_.conflict(accesses(earlier), accesses(later))) return true;
    const Op& a = program_.body[earlier].op;
    const Op& b = program_.body[later].op;
    if (kindOf(a) == InstructionKind::Post && kindOf(b) == InstructionKind::Post) return true;
    return sharesTokens(a, b) || definesFor(program_.body[earlier], program_.body[later]) ||
           definesFor(program_.body[later], program_.body[earlier]);
  }

  bool writesInput(size_t item) const {
    // A Wait has the accesses of its post, which is an item of its own.
    if (std::holds_alternative<Wait>(program_.body[item].op)) return false;
    const std::set<ItemAccess>& all = items_.items[item].accesses;
    return std::any_of(all.begin(), all.end(), [&](const ItemAccess& access) {
      return access.write && items_.inputs.contains(access.root);
    });
  }

  std::optional<size_t> firstInputWrite() const {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (writesInput(i)) return i;
    }
    return std::nullopt;
  }

  const Item& accesses(size_t item) const { return items_.items[accesses_of_[item]]; }

 private:
  // The items that use one buffer or one slot.
  struct Users {
    std::vector<size_t> changing;  // items that write the buffer or define the slot
    std::vector<size_t> reading;   // items that read the buffer or name the slot
    void add(size_t item, bool changes) { (changes ? changing : reading).push_back(item); }
  };

  void index(size_t item) {
    const Instruction& x = program_.body[item];
    for (const ItemAccess& access : accesses(item).accesses) {
      by_root_[access.root].add(item, access.write);
    }
    forEachSlotInside(x,
                      [&](SlotId slot, FieldRole role) { by_slot_[slot].add(item, role.defines); });
    forEachToken(x.op, [&](TokenId token, FieldRole) { by_token_[token].push_back(item); });
    if (kindOf(x.op) == InstructionKind::Post) posts_.push_back(item);
  }

  static bool sharesTokens(const Op& a, const Op& b) {
    bool shares = false;
    forEachToken(a, [&](TokenId x, FieldRole) {
      forEachToken(b, [&](TokenId y, FieldRole) { shares = shares || x == y; });
    });
    return shares;
  }

  // Returns whether `a` defines a slot that `b` names.
  static bool definesFor(const Instruction& a, const Instruction& b) {
    std::set<SlotId> defined;
    forEachSlotInside(a, [&](SlotId slot, FieldRole role) {
      if (role.defines) defined.insert(slot);
    });
    bool names = false;
    forEachSlotInside(b, [&](SlotId slot, FieldRole) { names = names || defined.contains(slot); });
    return names;
  }

  const Program& program_;
  const BufferAccesses items_;
  std::vector<size_t> accesses_of_;  // per item: the item whose accesses it has
  std::map<RootId, Users> by_root_;
  std::map<SlotId, Users> by_slot_;
  std::map<TokenId, std::vector<size_t>> by_token_;
  std::vector<size_t> posts_;
};

// The accesses, definitions, tokens and posts of several items together. The class tests quickly
// whether a further item depends on one of these items. It ignores which parts of a buffer the
// items access.
class ItemSet {
 public:
  void add(const Instruction& x, const Item& accesses) {
    for (const ItemAccess& access : accesses.accesses) {
      bool& written = writes_[access.root];
      written = written || access.write;
    }
    forEachSlotInside(x, [&](SlotId slot, FieldRole role) {
      if (role.defines) defined_.insert(slot);
    });
    forEachToken(x.op, [&](TokenId token, FieldRole) { tokens_.insert(token); });
    posts_ = posts_ || kindOf(x.op) == InstructionKind::Post;
  }

  bool isNeededBy(const Instruction& x, const Item& accesses) const {
    for (const ItemAccess& access : accesses.accesses) {
      const auto found = writes_.find(access.root);
      if (found != writes_.end() && (found->second || access.write)) return true;
    }
    bool needed = posts_ && kindOf(x.op) == InstructionKind::Post;
    forEachSlotInside(x, [&](SlotId slot, FieldRole) { needed |= defined_.contains(slot); });
    forEachToken(x.op, [&](TokenId token, FieldRole) { needed |= tokens_.contains(token); });
    return needed;
  }

 private:
  std::map<RootId, bool> writes_;  // per accessed buffer: whether an item writes it
  std::set<SlotId> defined_;
  std::set<TokenId> tokens_;
  bool posts_ = false;
};

// The order of the items of a program, while they are moved. The number of an item is its index
// before the first move.
class ItemPlaces {
 public:
  explicit ItemPlaces(size_t count) : items_(count), place_(count), marks_(count) {
    std::iota(items_.begin(), items_.end(), size_t{0});
    place_ = items_;
  }

  const std::vector<size_t>& items() const { return items_; }

  // Moves the item and the items on which it depends before the target. Changes nothing and returns
  // false if the item depends on the target or precedes it.
  bool moveBefore(const ItemOrder& order, const ItemMove& move) {
    const size_t begin = place_[move.target];
    if (place_[move.item] < begin) return false;
    const size_t end = place_[move.item] + 1;
    if (!markNeeded(order, move)) return false;
    std::vector<size_t> moved, late;
    for (size_t at = end; at-- > begin;) {
      (marks_[items_[at]] == mark_ ? moved : late).push_back(items_[at]);
    }
    place(begin, moved, late);
    return true;
  }

 private:
  // Marks the item of the move, and all items after the target on which this item depends. Returns
  // false if the item depends on the target.
  bool markNeeded(const ItemOrder& order, const ItemMove& move) {
    ++mark_;
    marks_[move.item] = mark_;
    bool possible = true;
    std::vector<size_t> open{move.item};
    while (possible && !open.empty()) {
      const size_t later = open.back();
      open.pop_back();
      order.forNeighbours(later, [&](size_t earlier) {
        const bool is_between =
            place_[earlier] >= place_[move.target] && place_[earlier] < place_[later];
        if (!is_between || marks_[earlier] == mark_ || !order.depends(later, earlier)) return;
        possible = possible && earlier != move.target;
        marks_[earlier] = mark_;
        open.push_back(earlier);
      });
    }
    return possible;
  }

  // Places the items of `first`, then the items of `second`, at the positions from `begin` on. Both
  // lists are in reverse order.
  void place(size_t begin, const std::vector<size_t>& first, const std::vector<size_t>& second) {
    for (const std::vector<size_t>* list : {&first, &second}) {
      for (size_t i = list->size(); i-- > 0; ++begin) {
        items_[begin] = (*list)[i];
        place_[(*list)[i]] = begin;
      }
    }
  }

  std::vector<size_t> items_;  // per position: the item
  std::vector<size_t> place_;  // per item: its position
  std::vector<size_t> marks_;  // per item: mark_ of the last move that needs the item
  size_t mark_ = 0;
};

// Moves the items of [begin, end) that are in `late` after all other items of this range.
void partition(Program& program, size_t begin, size_t end, const std::set<size_t>& late) {
  std::vector<Instruction> early_items, late_items;
  for (size_t i = begin; i < end; ++i) {
    (late.contains(i) ? late_items : early_items).push_back(std::move(program.body[i]));
  }
  const auto from = program.body.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto middle = std::move(early_items.begin(), early_items.end(), from);
  std::move(late_items.begin(), late_items.end(), middle);
}

}  // namespace

size_t moveBefore(Program& program, const std::vector<ItemMove>& moves, size_t most) {
  const ItemOrder order(program);
  ItemPlaces places(program.body.size());
  size_t moved = 0;
  for (const ItemMove& move : moves) {
    if (moved < most && places.moveBefore(order, move)) ++moved;
  }
  if (moved == 0) return 0;
  std::vector<Instruction> body;
  for (size_t item : places.items()) body.push_back(std::move(program.body[item]));
  program.body = std::move(body);
  return moved;
}

void delayInputWrites(Program& program) {
  const ItemOrder order(program);
  const std::optional<size_t> first = order.firstInputWrite();
  if (!first) return;
  size_t end = program.body.size();
  // Items after the last Allocate need not move, because only allocations must precede the writes.
  while (end > *first && !std::holds_alternative<Allocate>(program.body[end - 1].op)) --end;
  std::set<size_t> late;
  ItemSet late_items;
  for (size_t i = *first; i < end; ++i) {
    const Instruction& x = program.body[i];
    if (!order.writesInput(i) && !late_items.isNeededBy(x, order.accesses(i))) continue;
    late.insert(i);
    late_items.add(x, order.accesses(i));
  }
  partition(program, *first, end, late);
}

void hoistAllocations(Program& program) {
  const std::optional<size_t> first = ItemOrder(program).firstInputWrite();
  if (!first) return;
  std::set<size_t> late;
  for (size_t i = *first; i < program.body.size(); ++i) {
    // Only allocations are hoisted.
    if (!std::holds_alternative<Allocate>(program.body[i].op)) late.insert(i);
  }
  partition(program, *first, program.body.size(), late);
}

}  // namespace heddle::host
