#include "host/passes/analysis/buffer_accesses.h"

#include <algorithm>
#include <map>
#include <optional>

#include "host/program/visit.h"

namespace heddle::host {
namespace {

using Roots = std::set<RootId>;

class ItemFinder {
 public:
  explicit ItemFinder(const Program& program)
      : program_(program),
        roots_of_(program.slots.size()),
        part_of_(program.slots.size()),
        defined_(program.slots.size(), 0) {}

  BufferAccesses run() {
    for (SlotId id : program_.inputs) {
      if (slot(id).is_scalar) continue;
      const RootId root = out_.allocate.push_back(nullptr);
      out_.inputs.insert(root);
      roots_of_[id] = {root};
    }
    for (const Instruction& x : program_.body) {
      Item item;
      item.stream = streamOf(x.op).value_or(StreamId());
      if (const std::optional<TokenId> token = postedToken(x.op)) item.posts = *token;
      walk(x, item);
      out_.items.push_back(std::move(item));
    }
    for (SlotId id : program_.outputs) {
      const Roots& roots = roots_of_[id];
      out_.returned.insert(roots.begin(), roots.end());
    }
    return std::move(out_);
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[id]; }

  RootId rootOf(const Instruction& allocate) {
    const auto [found, is_new] = root_of_.try_emplace(&allocate, out_.allocate.endId());
    if (is_new) out_.allocate.push_back(&allocate);
    return found->second;
  }

  void walk(const Instruction& x, Item& item) {
    std::vector<const std::vector<Instruction>*> lists;
    forEachBody(x.op, [&](const std::vector<Instruction>& body) { lists.push_back(&body); });
    if (!lists.empty()) return body(lists, item);
    visit(x, item, false);
  }

  // Returns whether the author of the program ordered this instruction. `nested` says whether the
  // instruction is in the body of a For or If. The result is true for:
  //  - GroupBegin, GroupEnd, Send, Recv, Call and barriers
  //  - if `nested` is true: also posts, events, waits, and instructions on streams other than
  //    kCallerStream
  static bool isOrderedByAuthor(const Op& op, bool nested) {
    switch (kindOf(op)) {
      case InstructionKind::Group:
      case InstructionKind::Call:
        return true;
      case InstructionKind::Post: {
        const auto* collective = std::get_if<Communicate>(&op);  // nullptr: a Send or Recv
        return nested || collective == nullptr || collective->kind == comm::CollectiveKind::Barrier;
      }
      case InstructionKind::Order:
        return nested;
      case InstructionKind::Memory:
      case InstructionKind::View:
      case InstructionKind::Work:
      case InstructionKind::Control:
        return nested && streamOf(op).value_or(kCallerStream) != kCallerStream;
    }
    return false;
  }

  // Visits the bodies of a For or If. A body may run any number of times, also zero, so a slot may
  // name one of several buffers afterwards. Each visit adds the buffers that a slot may name. The
  // function repeats the visits until they add nothing.
  void body(std::vector<const std::vector<Instruction>*> lists, Item& item) {
    // A slot may name a different part of a buffer in each iteration, so the part of the slot is
    // unknown.
    for (const auto* list : lists) {
      forEachInstruction(*list, [&](const Instruction& x, InstructionIndex) {
        forEachSlot(x.op, [&](SlotId id, FieldRole role) {
          if (role.defines) part_of_[id] = PartId();
        });
      });
    }
    IdVector<SlotId, Roots> before;
    do {
      before = roots_of_;
      for (const auto* list : lists) {
        forEachInstruction(*list,
                           [&](const Instruction& x, InstructionIndex) { visit(x, item, true); });
      }
    } while (before != roots_of_);
  }

  void define(SlotId id, Roots roots, bool keep_old) {
    part_of_[id] = PartId();
    ++defined_[id];
    Roots& now = roots_of_[id];
    if (keep_old) {
      now.insert(roots.begin(), roots.end());
    } else {
      now = std::move(roots);
    }
  }

  // Returns the part of a buffer that a view names. A view of a part counts as the same part. A
  // slice along one axis of a slot without a known part is a new part. Returns an invalid id for
  // all other views.
  PartId partOf(const Alias& view) {
    const PartId inherited = part_of_[view.in];
    const auto* slice = std::get_if<Alias::Slice>(&view.view);
    if (inherited.valid() || slice == nullptr) return inherited;
    const std::vector<Size> sizes = slot(view.in).tensor.sizes();
    std::optional<size_t> cut;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (slice->starts[axis].isConstant(0) && slice->stops[axis] == sizes[axis]) continue;
      if (cut) return PartId();
      cut = axis;
    }
    if (!cut) return PartId();
    return out_.parts.push_back(
        {view.in, defined_[view.in], *cut, slice->starts[*cut], slice->stops[*cut]});
  }

  void visit(const Instruction& x, Item& item, bool nested) {
    const Op& op = x.op;
    // Besides Call, which is opaque, only Allocate and Alias define tensor slots.
    if (const auto* made = std::get_if<Allocate>(&op))
      define(made->out, {rootOf(x)}, nested || x.on.valid());
    if (const auto* view = std::get_if<Alias>(&op)) {
      const PartId part = nested || x.on.valid() ? PartId() : partOf(*view);
      define(view->out, Roots(roots_of_[view->in]), nested || x.on.valid());
      part_of_[view->out] = part;
    }
    for (const Access& access : accessesOf(op)) {
      if (slot(access.slot).is_scalar) continue;
      for (RootId root : roots_of_[access.slot]) {
        // A Free concerns the full buffer, even if the slot names only a part of it.
        const bool freed = std::holds_alternative<Free>(op);
        item.accesses.insert({root, access.write, freed ? PartId() : part_of_[access.slot]});
        if (freed) out_.freed.insert(root);
      }
    }
    if (isOrderedByAuthor(op, nested)) item.opaque = true;
    if (nested && streamOf(op)) item.stream = kCallerStream;
  }

  const Program& program_;
  BufferAccesses out_;
  IdVector<SlotId, Roots> roots_of_;              // the buffers that the slot may name
  IdVector<SlotId, PartId> part_of_;              // invalid: unknown, possibly the full buffer
  IdVector<SlotId, int32_t> defined_;             // number of definitions so far
  std::map<const Instruction*, RootId> root_of_;  // for lookups; its order is not deterministic
};

// Returns a constant and a size whose product is `size`.
std::pair<int64_t, Size> multipleOf(const Size& size) {
  if (size.isConstant()) return {size.constant(), Size(1)};
  if (size.kind() == Size::Kind::Mul && size.lhs().isConstant()) {
    return {size.lhs().constant(), size.rhs()};
  }
  if (size.kind() == Size::Kind::Mul && size.rhs().isConstant()) {
    return {size.rhs().constant(), size.lhs()};
  }
  return {1, size};
}

// Returns whether a <= b is certain. The function recognizes these cases:
// - `a` and `b` are equal.
// - `a` is 0, and `b` cannot be negative.
// - `a` and `b` are constant multiples of the same size, which cannot be negative, and the constant
//   of `a` is at most that of `b`.
// A size without a subtraction cannot be negative, because extents are not negative.
bool isAtMost(const Size& a, const Size& b) {
  if (a == b || a.isConstant(0)) return a == b || !b.hasDifference();
  const auto [n, x] = multipleOf(a);
  const auto [m, y] = multipleOf(b);
  return x == y && n <= m && !x.hasDifference();
}

}  // namespace

bool BufferAccesses::anyOpaque() const {
  return std::any_of(items.begin(), items.end(), [](const Item& item) { return item.opaque; });
}

BufferAccesses bufferAccessesOf(const Program& program) { return ItemFinder(program).run(); }

bool BufferAccesses::mayOverlap(const ItemAccess& a, const ItemAccess& b) const {
  if (!a.part.valid() || !b.part.valid()) return true;
  const BufferPart& x = parts[a.part];
  const BufferPart& y = parts[b.part];
  if (x.slot != y.slot || x.definition != y.definition || x.axis != y.axis) return true;
  return !isAtMost(x.stop, y.start) && !isAtMost(y.stop, x.start);
}

bool BufferAccesses::conflict(const Item& a, const Item& b) const {
  for (const ItemAccess& x : a.accesses) {
    // The accesses of one root are adjacent in the set.
    auto y = b.accesses.lower_bound({x.root, false});
    for (; y != b.accesses.end() && y->root == x.root; ++y) {
      if ((x.write || y->write) && mayOverlap(x, *y)) return true;
    }
  }
  return false;
}

bool isUnordered(const Program& program, const BufferAccesses& items) {
  bool events = false;
  for (const Instruction& x : program.body) {
    forEachFieldOfKind<FieldKind::EventUse>(x.op, [&](EventId, FieldRole) { events = true; });
  }
  return !events && !items.anyOpaque();
}

}  // namespace heddle::host
