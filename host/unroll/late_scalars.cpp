#include "host/unroll/late_scalars.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "host/program/visit.h"
#include "ir/graph/size_scalars.h"
#include "ir/sizes/cancel_terms.h"

namespace heddle::host {
namespace {

std::set<std::string> scalarsIn(const Size& size) {
  std::set<std::string> symbols;
  addScalarSymbols(size, symbols);
  return symbols;
}

// Returns whether the size is linear in the symbol, that is, a sum in which the symbol occurs only
// as a term or as one factor of a term. Returns false if the search needs more than `visits`
// visits. The search may visit a part of the size several times, because sizes share parts.
bool isLinear(const Size& size, const std::string& symbol, int& visits) {
  if (--visits < 0) return false;
  if (!scalarsIn(size).contains(symbol)) return true;
  const bool left = size.kind() != Size::Kind::Symbol && scalarsIn(size.lhs()).contains(symbol);
  const bool right = size.kind() != Size::Kind::Symbol && scalarsIn(size.rhs()).contains(symbol);
  switch (size.kind()) {
    case Size::Kind::Symbol:
      return true;
    case Size::Kind::Add:
    case Size::Kind::Sub:
      return isLinear(size.lhs(), symbol, visits) && isLinear(size.rhs(), symbol, visits);
    case Size::Kind::Mul:
      return left != right && isLinear(left ? size.lhs() : size.rhs(), symbol, visits);
    default:
      return false;
  }
}

bool isLinear(const Size& size, const std::string& symbol) {
  int visits = 1000;
  return isLinear(size, symbol, visits);
}

bool haveCommon(const std::set<SlotId>& a, const std::set<SlotId>& b) {
  return std::any_of(a.begin(), a.end(), [&](SlotId slot) { return b.contains(slot); });
}

// Finds the early scalars: all scalars in sizes that are not late. Their values must be known when
// a plan is created.
class EarlyScalars {
 public:
  explicit EarlyScalars(const Program& program) : program_(program) {
    for (const Slot& slot : program.slots) {
      for (const IterDomain& axis : slot.tensor.domain) add(axis.extent);
      for (const Size& size : slot.alloc) add(size);
    }
    for (const Kernel& kernel : program.kernels) {
      heddle::forEachSize(kernel.segment, [&](const Size& size) { add(size); });
    }
    for (const SizeGuard& guard : program.guards) {
      guard.at_most ? addUnlessLinear(guard.b - guard.a) : add(guard.b - guard.a);
    }
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) { visit(x.op); });
    stored_.insert(program_.inputs.begin(), program_.inputs.end());
    findOrigins();
    forEachInstruction(program.body,
                       [&](const Instruction& x, InstructionIndex) { keepDistances(x.op); });
    separate();
  }

  bool has(const std::string& symbol) const { return early_.contains(symbol); }

 private:
  void add(const Size& size) { addScalarSymbols(size, early_); }

  void addUnlessLinear(const Size& size) {
    const std::set<std::string> found = scalarsIn(size);
    for (const std::string& symbol : found) {
      if (!isLinear(size, symbol)) early_.insert(symbol);
    }
    if (found.size() > 1) together_.push_back(found);
  }

  // If several late scalars occur in one guard or bound, makes all of them early. The range of a
  // late scalar must not depend on another late scalar.
  void separate() {
    for (const std::set<std::string>& symbols : together_) {
      const auto is_late = [&](const std::string& symbol) { return !early_.contains(symbol); };
      if (std::count_if(symbols.begin(), symbols.end(), is_late) < 2) continue;
      early_.insert(symbols.begin(), symbols.end());
    }
  }

  // A Slice may begin at an address that depends on a late scalar, but its number of elements must
  // not depend on one. All scalars in views of other kinds become early.
  void visit(const Alias& alias) {
    const auto* slice = std::get_if<Alias::Slice>(&alias.view);
    for (size_t i = 0; slice != nullptr && i < slice->starts.size(); ++i) {
      addUnlessLinear(slice->starts[i]);
      add(cancelTerms(slice->stops[i] - slice->starts[i]));
    }
    aliases_.push_back(&alias);
    if (slice != nullptr) return;
    for (const Size& size : sizesOf(Op(alias))) add(size);
  }

  // Finds the views of one buffer that the instruction accesses together, if it writes one of them.
  // The scalars that decide where these views begin become early. If only a run knew the distance
  // of the views, the write could overwrite elements of the other view.
  void keepDistances(const Op& op) {
    if (origins_.empty() || std::holds_alternative<Alias>(op)) return;
    std::vector<SlotId> read;
    std::vector<SlotId> written;
    forEachSlot(op,
                [&](SlotId id, FieldRole role) { (role.writes ? written : read).push_back(id); });
    read.insert(read.end(), written.begin(), written.end());
    for (SlotId out : written) {
      const Origin writes = originOf(out);
      for (SlotId in : read) {
        const Origin reads = originOf(in);
        if (in == out || !haveCommon(reads.buffers, writes.buffers)) continue;
        early_.insert(reads.scalars.begin(), reads.scalars.end());
        early_.insert(writes.scalars.begin(), writes.scalars.end());
      }
    }
  }

  // The memory that a slot may name when an instruction uses it. A slot may have several
  // definitions, also in loops, so each set is the union over all definitions.
  struct Origin {
    std::set<SlotId> buffers;       // inputs and results of Allocate whose memory it may name
    std::set<std::string> scalars;  // scalars on which the position of the first element depends
    bool add(const Origin& other) {
      const size_t before = buffers.size() + scalars.size();
      buffers.insert(other.buffers.begin(), other.buffers.end());
      scalars.insert(other.scalars.begin(), other.scalars.end());
      return buffers.size() + scalars.size() > before;
    }
  };

  // In a loop, the Alias of a view may come before the instruction that defines its operand. The
  // function therefore repeats until nothing changes.
  void findOrigins() {
    for (const Alias* alias : aliases_) {
      Origin& origin = origins_[alias->out];
      if (stored_.contains(alias->out)) origin.buffers.insert(alias->out);
      const auto* slice = std::get_if<Alias::Slice>(&alias->view);  // see visit()
      if (slice == nullptr) continue;
      for (const Size& start : slice->starts) addScalarSymbols(start, origin.scalars);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const Alias* alias : aliases_) changed |= origins_[alias->out].add(originOf(alias->in));
    }
  }

  Origin originOf(SlotId slot) const {
    const auto found = origins_.find(slot);
    return found == origins_.end() ? Origin{{slot}, {}} : found->second;
  }

  void visit(const Op& op) {
    // Only an Alias makes a view.
    if (const auto* alias = std::get_if<Alias>(&op)) return visit(*alias);
    if (const auto* allocate = std::get_if<Allocate>(&op)) stored_.insert(allocate->out);
    for (const Size& size : sizesOf(op)) add(size);
  }

  const Program& program_;
  std::set<std::string> early_;
  std::vector<const Alias*> aliases_;
  std::set<SlotId> stored_;  // inputs, and results of Allocate; an Alias may define them again
  std::map<SlotId, Origin> origins_;  // origins of all views
  // For each guard or bound with several scalars: these scalars.
  std::vector<std::set<std::string>> together_;
};

}  // namespace

LateInputs lateInputsOf(const Program& program) {
  LateInputs late;
  const std::set<std::string> used = scalarSymbolsOf(program);
  if (used.empty()) return late;
  const EarlyScalars early(program);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Slot& slot = program.slots.at(program.inputs[i]);
    const std::string symbol = scalarSymbol(slot.name);
    if (!used.contains(symbol) || early.has(symbol)) continue;
    late.emplace(symbol, static_cast<int32_t>(i));
  }
  return late;
}

std::optional<int64_t> growthOf(const Size& size, const std::string& symbol,
                                const SizeBindings& sizes) {
  if (!scalarsIn(size).contains(symbol)) return 0;
  if (!isLinear(size, symbol)) return std::nullopt;
  if (size.kind() == Size::Kind::Symbol) return 1;
  int64_t result = 0;
  if (size.kind() == Size::Kind::Mul) {
    const bool left = scalarsIn(size.lhs()).contains(symbol);
    const auto growth = growthOf(left ? size.lhs() : size.rhs(), symbol, sizes);
    const int64_t factor = (left ? size.rhs() : size.lhs()).evaluate(lookupIn(sizes));
    if (!growth || __builtin_mul_overflow(*growth, factor, &result)) return std::nullopt;
    return result;
  }
  const auto a = growthOf(size.lhs(), symbol, sizes), b = growthOf(size.rhs(), symbol, sizes);
  const bool fits = a && b &&
                    (size.kind() == Size::Kind::Add ? !__builtin_add_overflow(*a, *b, &result)
                                                    : !__builtin_sub_overflow(*a, *b, &result));
  return fits ? std::optional(result) : std::nullopt;
}

void LateRange::restrict(int64_t value, int64_t growth, int64_t at) {
  if (growth == 0) return;
  // The largest distance from `at` for which the size is still at least 0.
  const int64_t steps =
      growth == std::numeric_limits<int64_t>::min() ? 0 : value / std::abs(growth);
  int64_t bound = 0;
  if (growth > 0 && !__builtin_sub_overflow(at, steps, &bound)) least = std::max(least, bound);
  if (growth < 0 && !__builtin_add_overflow(at, steps, &bound)) most = std::min(most, bound);
}

}  // namespace heddle::host
