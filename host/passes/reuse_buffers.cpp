#include "host/passes/reuse_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/plan/in_place.h"
#include "host/lower/lower_all_to_all.h"
#include "host/passes/analysis/access_order.h"
#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/slot_uses.h"
#include "host/program/visit.h"
#include "ir/analysis/memory_order.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// An input or the result of an Allocate.
struct StoredValue {
  RootId root;
  SlotId slot;
  size_t allocate = 0;     // index of the Allocate
  MeshId on = kNoMesh;     // the ranks on which the Allocate executes
  std::string bytes = {};  // an expression; values with equal expressions have equal sizes
  size_t last_use = 0;     // index of the last item that uses the value
  size_t freed = 0;        // index of the Free; 0: the value is an input or returned
};

// The largest number of old values that are tried for one new value. The limit keeps the time of
// the pass proportional to the number of values.
constexpr size_t kMostTried = 16;

// Values by their last use, the latest first.
using LastUsedFirst = std::multimap<size_t, StoredValue, std::greater<>>;

// Inputs of equal size on the same mesh. Outputs have reserved the inputs in `taken`.
struct OfferedInputs {
  LastUsedFirst free = {};
  LastUsedFirst taken = {};
};

class BufferReuser {
 public:
  explicit BufferReuser(Program program)
      : program_(std::move(program)),
        items_(bufferAccessesOf(program_)),
        slots_(slotUsesOf(program_)),
        viewed_(program_.slots.size()) {}

  Program run() {
    if (items_.anyOpaque()) return std::move(program_);
    order_.emplace(program_, items_);
    findViews();
    findInputs();
    findAllocated();
    // Outputs choose from the inputs before temporaries do. The memory of an output outlives the
    // run, so an output that takes the memory of an input saves memory for longer.
    for (size_t i = 0; i < allocated_.size(); ++i) {
      if (isReturned(allocated_[i])) listInputs(allocated_[i], true);
    }
    for (size_t i = 0; i < allocated_.size(); ++i) {
      if (!isReturned(allocated_[i])) listInputs(allocated_[i], false);
    }
    listAllocated();
    return std::move(program_);
  }

 private:
  // --- the values --------------------------------------------------------------------------------

  const Slot& slot(SlotId id) const { return program_.slots[id]; }
  bool isReturned(const StoredValue& value) const { return items_.returned.contains(value.root); }
  Allocate& allocateOf(const StoredValue& value) {
    return std::get<Allocate>(program_.body[value.allocate].op);
  }

  void findViews() {
    for (const Instruction& x : program_.body) {
      // Only an Alias makes a view.
      const auto* view = std::get_if<Alias>(&x.op);
      if (view != nullptr && slots_[view->out].defined.size() == 1) viewed_[view->out] = view;
    }
  }

  // Returns the number of bytes that each rank allocates for the slot, as the text of a product.
  // Equal products have equal texts, because the factors are sorted. Returns "" if the product of
  // the constants overflows.
  std::string bytesOf(const Slot& of) const {
    int64_t constant = sizeOf(of.tensor.dtype);
    std::vector<std::string> factors;
    std::vector<Size> open =
        of.alloc.empty() ? blockAllocation(of.tensor, program_.meshes) : of.alloc;
    while (!open.empty()) {
      const Size size = open.back();
      open.pop_back();
      if (size.kind() == Size::Kind::Mul) {
        open.push_back(size.lhs());
        open.push_back(size.rhs());
      } else if (!size.isConstant()) {
        factors.push_back(size.str());
      } else if (__builtin_mul_overflow(constant, size.constant(), &constant)) {
        return "";
      }
    }
    std::sort(factors.begin(), factors.end());
    return fmt::format("{} {}", constant, fmt::join(factors, " * "));
  }

  void complete(StoredValue& value) const {
    value.bytes = bytesOf(slot(value.slot));
    for (const AccessOrder::Use& use : order_->usesOf(value.root)) {
      value.last_use = std::max(value.last_use, use.item);
    }
  }

  void findInputs() {
    std::set<SlotId> stored;  // inputs in which an output is stored
    for (const auto& entry : program_.reuses) stored.insert(entry.second.input);
    auto root = items_.inputs.begin();
    for (SlotId id : program_.inputs) {
      if (slot(id).is_scalar) continue;
      StoredValue value{*root++, id};
      const bool is_kept = isReturned(value) || !slots_[id].defined.empty() || stored.contains(id);
      complete(value);
      if (is_kept || value.bytes.empty()) continue;
      const std::pair key(meshOf(slot(id)), value.bytes);
      inputs_[key].free.emplace(value.last_use, std::move(value));
    }
  }

  // Finds the Allocates at the top level whose slots have one definition. Leaves out values that
  // are not used, and values that are neither freed nor returned.
  void findAllocated() {
    std::map<RootId, size_t> freed;
    for (size_t i = 0; i < program_.body.size(); ++i) {
      // Only a Free ends the life of a buffer.
      if (!std::holds_alternative<Free>(program_.body[i].op)) continue;
      for (const ItemAccess& access : items_.items[i].accesses) freed[access.root] = i;
    }
    for (RootId root : items_.allocate.ids()) {
      const Instruction* made = items_.allocate[root];
      if (made == nullptr) continue;
      StoredValue value{root, std::get<Allocate>(made->op).out};
      const std::vector<size_t>& defined = slots_[value.slot].defined;
      if (defined.size() != 1 || &program_.body[defined.front()] != made) continue;
      if (order_->usesOf(root).empty()) continue;
      if (!isReturned(value) && !freed.contains(root)) continue;
      if (freed.contains(root)) value.freed = freed[root];
      value.allocate = defined.front();
      value.on = made->on;
      complete(value);
      if (!value.bytes.empty()) allocated_.push_back(std::move(value));
    }
    std::sort(allocated_.begin(), allocated_.end(),
              [](const StoredValue& a, const StoredValue& b) { return a.allocate < b.allocate; });
  }

  // --- legality ----------------------------------------------------------------------------------

  // Returns the slot of the input or Allocate of which `id` is a view. Returns `id` if it is no
  // view.
  SlotId baseOf(SlotId id) const {
    while (viewed_[id] != nullptr) id = viewed_[id]->in;
    return id;
  }

  // Follows the views of the kind Same, which only give the same elements another name. Returns the
  // first slot that is no such view.
  SlotId withoutNames(SlotId id) const {
    while (viewed_[id] != nullptr && std::holds_alternative<Alias::Same>(viewed_[id]->view)) {
      id = viewed_[id]->in;
    }
    return id;
  }

  // Returns whether the slot always names one buffer.
  bool isFixed(SlotId id) const { return slot(id).is_scalar || slots_[id].defined.size() <= 1; }

  // Returns whether both tensors have every element at the same position.
  bool haveSameLayout(const Slot& old, const Slot& next) const {
    if (old.tensor.dtype != next.tensor.dtype || old.tensor.sizes() != next.tensor.sizes()) {
      return false;
    }
    if (!(old.tensor.sharding == next.tensor.sharding) || old.alloc != next.alloc) return false;
    const auto& observed = old.tensor.layout.observed;
    return sameOrder(observed ? observed->order : old.tensor.allocationOrder(),
                     next.tensor.allocationOrder(), next.tensor);
  }

  // Returns whether the item may read `old` and write `next` in the same memory.
  bool mayWorkInPlace(size_t item, const StoredValue& old, const StoredValue& next) const {
    // Only kernels have rules for work in place. All other work reads and writes in any order.
    const auto* launch = std::get_if<LaunchKernel>(&program_.body[item].op);
    if (launch == nullptr || !haveSameLayout(slot(old.slot), slot(next.slot))) return false;
    const auto areFixed = [&](const std::vector<SlotId>& ids) {
      return std::all_of(ids.begin(), ids.end(), [&](SlotId id) { return isFixed(baseOf(id)); });
    };
    if (!areFixed(launch->inputs) || !areFixed(launch->outputs)) return false;
    codegen::InPlaceRules& rules =
        rules_.try_emplace(launch->kernel, program_.kernels[launch->kernel].segment).first->second;
    for (size_t k = 0; k < launch->outputs.size(); ++k) {
      if (baseOf(launch->outputs[k]) == old.slot) return false;
      if (baseOf(launch->outputs[k]) != next.slot) continue;
      if (withoutNames(launch->outputs[k]) != next.slot) return false;
      for (size_t i = 0; i < launch->inputs.size(); ++i) {
        if (baseOf(launch->inputs[i]) != old.slot) continue;
        if (withoutNames(launch->inputs[i]) != old.slot) return false;
        if (!rules.whyNot(i, k).empty()) return false;
      }
    }
    return true;
  }

  // Returns whether `next` may be stored in the memory of `old`, which has as many bytes.
  bool mayReuse(const StoredValue& old, const StoredValue& next) const {
    const std::vector<AccessOrder::Use>& later = order_->usesOf(next.root);
    for (const AccessOrder::Use& before : order_->usesOf(old.root)) {
      for (const AccessOrder::Use& after : later) {
        const bool is_fine = before.item == after.item ? mayWorkInPlace(after.item, old, next)
                                                       : order_->happensBefore(before, after);
        if (!is_fine) return false;
      }
    }
    return true;
  }

  // --- the lists ---------------------------------------------------------------------------------

  static MeshId meshOf(const Slot& of) {
    return of.tensor.sharding ? of.tensor.sharding->mesh : kNoMesh;
  }

  // Lists the inputs whose memory a value may reuse. The input with the latest last use is first.
  // An output reserves the first free input of its list. Reserved inputs follow the free ones in
  // the list of an output. The list of a temporary contains only free inputs.
  void listInputs(const StoredValue& next, bool is_output) {
    const auto offered = inputs_.find({meshOf(slot(next.slot)), next.bytes});
    if (offered == inputs_.end()) return;
    auto& [free, taken] = offered->second;
    std::vector<SlotId>& list = allocateOf(next).reuse;
    const auto first = listFrom(free, next, list);
    if (!is_output) return;
    listFrom(taken, next, list);
    if (first != free.end()) taken.insert(free.extract(first));
  }

  // Adds to `list` the inputs whose memory `next` may reuse, until the list is full. Returns the
  // first added input, or inputs.end().
  LastUsedFirst::const_iterator listFrom(const LastUsedFirst& inputs, const StoredValue& next,
                                         std::vector<SlotId>& list) const {
    auto first = inputs.end();
    auto input = inputs.lower_bound(order_->usesOf(next.root).front().item);
    for (size_t tried = 0; input != inputs.end() && tried < kMostTried; ++input, ++tried) {
      if (list.size() == kMostDonated) break;
      if (!mayReuse(input->second, next)) continue;
      if (first == inputs.end()) first = input;
      list.push_back(input->second.slot);
    }
    return first;
  }

  bool allocatesInside(const Instruction& x) const {
    bool found = false;
    forEachBody(x.op, [&](const std::vector<Instruction>& body) {
      forEachInstruction(body, [&](const Instruction& inner, InstructionIndex) {
        // Only an Allocate creates a buffer.
        found = found || std::holds_alternative<Allocate>(inner.op);
      });
    });
    return found;
  }

  // Lists at most one allocated tensor for each value, in the order of the program. A tensor is not
  // listed if the program allocates new memory between its Free and the Allocate of the new value
  // (host/passes/reuse_buffers.h).
  void listAllocated() {
    // The values not taken yet, by their ranks and StoredValue::bytes.
    std::map<std::pair<MeshId, std::string>, LastUsedFirst> earlier;
    size_t last_new = 0;  // index of the last item that allocates new memory
    size_t next = 0;
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const Instruction& x = program_.body[i];
      const bool is_value = next < allocated_.size() && allocated_[next].allocate == i;
      if (!is_value) {
        // Only an Allocate creates a buffer.
        if (std::holds_alternative<Allocate>(x.op) || allocatesInside(x)) last_new = i;
        continue;
      }
      const StoredValue& value = allocated_[next++];
      LastUsedFirst& values = earlier[{value.on, value.bytes}];
      const auto old = bestOf(values, value, last_new);
      if (old != values.end()) {
        allocateOf(value).reuse.push_back(old->second.slot);
        values.erase(old);
      } else {
        last_new = i;
      }
      if (!isReturned(value)) values.emplace(value.last_use, value);
    }
  }

  // Of the values whose memory `next` may take, returns the one with the latest last use. Removes
  // values that are freed before `last_new`. New memory has been allocated since then, so no later
  // value may take their memory either.
  LastUsedFirst::const_iterator bestOf(LastUsedFirst& values, const StoredValue& next,
                                       size_t last_new) const {
    auto old = values.lower_bound(order_->usesOf(next.root).front().item);
    for (size_t tried = 0; old != values.end() && tried < kMostTried; ++tried) {
      if (old->second.freed < last_new) {
        old = values.erase(old);
      } else if (mayReuse(old->second, next)) {
        return old;
      } else {
        ++old;
      }
    }
    return values.end();
  }

  Program program_;
  const BufferAccesses items_;
  const IdVector<SlotId, SlotUses> slots_;
  std::optional<AccessOrder> order_;
  IdVector<SlotId, const Alias*> viewed_;  // the only Alias that defines the slot; nullptr: none
  mutable std::map<KernelId, codegen::InPlaceRules> rules_;         // each analyzes its kernel once
  std::map<std::pair<MeshId, std::string>, OfferedInputs> inputs_;  // by mesh and size
  std::vector<StoredValue> allocated_;                              // in the order of the program
};

}  // namespace

Program reuseBuffers(Program program) {
  bool has_lists = false;
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    // Only an Allocate has a list.
    const auto* made = std::get_if<Allocate>(&x.op);
    has_lists = has_lists || (made != nullptr && !made->reuse.empty());
  });
  return has_lists ? std::move(program) : BufferReuser(std::move(program)).run();
}

void forgetReuses(Program& program) {
  if (!isUnordered(program, bufferAccessesOf(program))) return;
  forEachInstruction(program.body, [&](Instruction& x, InstructionIndex) {
    // Only an Allocate has a list.
    if (auto* made = std::get_if<Allocate>(&x.op)) made->reuse.clear();
  });
}

}  // namespace heddle::host
