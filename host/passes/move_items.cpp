#include "host/passes/move_items.h"

#include <algorithm>
#include <map>
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
  // may depend. Exception: every two posts depend on each other. Of the posts that have no other
  // dependency with `item`, calls work() only for the last one before `item`. May call work()
  // several times for one item, and also for `item` itself.
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
    // Every post depends on the last post before it, which in turn depends on all earlier posts.
    const auto post = std::lower_bound(posts_.begin(), posts_.end(), item);
    if (kindOf(x.op) == InstructionKind::Post && post != posts_.begin()) work(*(post - 1));
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
    // The post of a Wait is an item of its own, so the Wait does not count as a write.
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
    std::vector<size_t> reading;   // all other items that read the buffer or name the slot
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
    forEachSlotInside(
        x, [&](SlotId slot, FieldRole role) { (role.defines ? defined_ : used_).insert(slot); });
    forEachToken(x.op, [&](TokenId token, FieldRole) { tokens_.insert(token); });
    posts_ = posts_ || kindOf(x.op) == InstructionKind::Post;
  }

  bool isNeededBy(const Instruction& x, const Item& accesses) const {
    for (const ItemAccess& access : accesses.accesses) {
      const auto found = writes_.find(access.root);
      if (found != writes_.end() && (found->second || access.write)) return true;
    }
    bool needed = posts_ && kindOf(x.op) == InstructionKind::Post;
    forEachSlotInside(x, [&](SlotId slot, FieldRole role) {
      needed |= defined_.contains(slot) || (role.defines && used_.contains(slot));
    });
    forEachToken(x.op, [&](TokenId token, FieldRole) { needed |= tokens_.contains(token); });
    return needed;
  }

 private:
  std::map<RootId, bool> writes_;  // per accessed buffer: whether an item writes it
  std::set<SlotId> defined_;
  std::set<SlotId> used_;  // slots that an item names without defining them
  std::set<TokenId> tokens_;
  bool posts_ = false;
};

// The order of the items of a program, while they are moved. Items are named by their index before
// the first move. The items form a linked list, and each item has a label that grows along the
// list. A move therefore takes no time for the items that it passes.
class ItemList {
 public:
  explicit ItemList(size_t count)
      : previous_(count + 1),
        next_(count + 1),
        label_(count + 1),
        marks_(count),
        kept_before_(count),
        end_(count) {
    for (size_t item = 0; item <= count; ++item) {
      previous_[item] = item == 0 ? count : item - 1;
      next_[item] = item == count ? 0 : item + 1;
    }
    labelAll();
  }

  // Returns the items in their order.
  std::vector<size_t> items() const {
    std::vector<size_t> all;
    for (size_t item = next_[end_]; item != end_; item = next_[item]) all.push_back(item);
    return all;
  }

  bool precedes(size_t a, size_t b) const { return label_[a] < label_[b]; }

  // Moves the items of the wish, and the items on which they depend, before its target, where later
  // calls keep them. Changes nothing if one of these items depends on the target, or must stay
  // after the target because of an earlier wish. Returns whether an item moved.
  bool fulfil(const ItemOrder& order, const ItemMove& wish) {
    std::vector<size_t> moved;
    for (size_t item : wish.items) {
      if (!precedes(item, wish.target)) moved.push_back(item);
    }
    if (!addNeeded(order, moved, wish.target)) return false;
    std::sort(moved.begin(), moved.end(), [&](size_t a, size_t b) { return precedes(a, b); });
    for (size_t item : moved) place(item, wish.target);
    kept_before_[wish.target].push_back(&wish);
    return !moved.empty();
  }

 private:
  // Adds to `needed` the items after the target that must precede an item in `needed`, because this
  // item depends on them or because of an earlier wish. Returns false if the target itself must
  // precede an item in `needed`.
  bool addNeeded(const ItemOrder& order, std::vector<size_t>& needed, size_t target) {
    ++mark_;
    for (size_t item : needed) marks_[item] = mark_;
    bool possible = true;
    const auto add = [&](size_t earlier) {
      possible = possible && earlier != target;
      if (marks_[earlier] != mark_) needed.push_back(earlier);
      marks_[earlier] = mark_;
    };
    const auto isBetween = [&](size_t earlier, size_t later) {
      return !precedes(earlier, target) && precedes(earlier, later);
    };
    for (size_t i = 0; possible && i < needed.size(); ++i) {
      const size_t later = needed[i];
      order.forNeighbours(later, [&](size_t earlier) {
        if (isBetween(earlier, later) && order.depends(later, earlier)) add(earlier);
      });
      for (const ItemMove* wish : kept_before_[later]) {
        for (size_t earlier : wish->items) {
          if (isBetween(earlier, later)) add(earlier);
        }
      }
    }
    return possible;
  }

  void place(size_t item, size_t target) {
    join(previous_[item], next_[item]);
    const size_t before = previous_[target];
    join(before, item);
    join(item, target);
    const uint64_t low = before == end_ ? 0 : label_[before];
    label_[item] = low + (label_[target] - low) / 2;
    if (label_[item] == low) spreadLabels(item);
  }

  void join(size_t item, size_t next) {
    next_[item] = next;
    previous_[next] = item;
  }

  // Gives new labels to the items around `item`, which has the label of the item before it. Takes
  // the smallest aligned range of labels that is sparse enough, so that k moves take O(k log(k))
  // time (Bender et al., "Two simplified algorithms for maintaining order in a list").
  void spreadLabels(size_t item) {
    size_t first = item, last = item, count = 1;
    double most = 1;  // items that may have labels in the range
    for (int bits = 1; bits < kLabelBits; ++bits, most *= kDensity) {
      const uint64_t low = label_[item] >> bits << bits, size = uint64_t{1} << bits;
      while (previous_[first] != end_ && label_[previous_[first]] >= low) {
        first = previous_[first];
        ++count;
      }
      while (next_[last] != end_ && label_[next_[last]] - low < size) {
        last = next_[last];
        ++count;
      }
      if (static_cast<double>(count) > most || size / (count + 1) < 2) continue;
      setLabels(first, count, low, size);
      return;
    }
    labelAll();
  }

  void labelAll() { setLabels(next_[end_], label_.size() - 1, 0, uint64_t{1} << kLabelBits); }

  // Gives labels at equal distances in [low, low + size) to `count` items.
  void setLabels(size_t first, size_t count, uint64_t low, uint64_t size) {
    const uint64_t distance = size / (count + 1);
    for (size_t item = first; count > 0; --count, item = next_[item]) {
      label_[item] = low += distance;
    }
  }

  static constexpr int kLabelBits = 62;
  // spreadLabels(): when the range of labels doubles, the number of items that it may contain grows
  // by this factor.
  static constexpr double kDensity = 1.5;

  std::vector<size_t> previous_;  // per item; index end_ stands for the end of the list
  std::vector<size_t> next_;
  std::vector<uint64_t> label_;
  std::vector<size_t> marks_;  // per item: mark_ of the last wish that needs the item
  std::vector<std::vector<const ItemMove*>> kept_before_;  // per item: wishes with this target
  size_t end_;
  size_t mark_ = 0;  // number of the current wish, from 1
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

bool moveBefore(Program& program, const std::vector<ItemMove>& wishes) {
  const ItemOrder order(program);
  ItemList list(program.body.size());
  const auto isFulfilled = [](const ItemMove& wish) {
    return std::all_of(wish.items.begin(), wish.items.end(),
                       [&](size_t item) { return item < wish.target; });
  };
  bool moved = false;
  for (const bool first : {true, false}) {
    for (const ItemMove& wish : wishes) {
      if (isFulfilled(wish) == first && list.fulfil(order, wish)) moved = true;
    }
  }
  if (!moved) return false;
  std::vector<Instruction> body;
  for (size_t item : list.items()) body.push_back(std::move(program.body[item]));
  program.body = std::move(body);
  return true;
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
  std::set<SlotId> named;  // by the items in `late`
  for (size_t i = *first; i < program.body.size(); ++i) {
    // Only allocations are hoisted, and only if they do not define a slot again.
    const auto* allocate = std::get_if<Allocate>(&program.body[i].op);
    if (allocate != nullptr && !named.contains(allocate->out)) continue;
    late.insert(i);
    forEachSlotInside(program.body[i], [&](SlotId slot, FieldRole) { named.insert(slot); });
  }
  partition(program, *first, program.body.size(), late);
}

}  // namespace heddle::host
