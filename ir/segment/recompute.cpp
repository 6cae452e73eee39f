#include "ir/segment/recompute.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

// The expressions that compute a value again, in the order of the fusion.
using Chain = std::vector<ExprId>;

class Finder {
 public:
  explicit Finder(const SegmentedFusion& segmented)
      : segmented_(segmented),
        fusion_(segmented.fusion),
        readers_(readersOf(fusion_)),
        is_output_(fusion_.outputFlags()) {}

  // Returns the chain of each value that is computed again.
  std::map<ValueId, Chain> find() {
    std::map<ValueId, Chain> found;
    for (size_t g = 0; g < segmented_.groups.size(); ++g) {
      const Group& group = segmented_.groups[g];
      if (group.kind != GroupKind::Kernel) continue;
      // A value that is stored in any case counts as a value in memory for the values after it.
      std::vector<ValueId> outputs = group.outputs;
      std::sort(outputs.begin(), outputs.end());
      stored_.clear();
      for (ValueId value : outputs) {
        Chain chain = onlyKernelsRead(value) ? shortestChain(value, static_cast<int>(g)) : Chain();
        if (chain.empty()) {
          stored_.insert(value);
        } else {
          found.emplace(value, std::move(chain));
        }
      }
    }
    return found;
  }

 private:
  // Returns whether only kernels read the value, and none at computed indices. (A kernel that reads
  // it at computed indices needs it in memory.) Returns false for a value with a sharding and for
  // an output of the fusion.
  bool onlyKernelsRead(ValueId value) const {
    if (is_output_[value] || fusion_.tensor(value).sharding) return false;
    return std::all_of(readers_[value].begin(), readers_[value].end(), [&](ExprId id) {
      const Expression& reader = fusion_.expr(id);
      if (isIndexed(reader, 0) && reader.inputs[0] == value) return false;
      const int group = segmented_.group_of[id];
      return group >= 0 && segmented_.groups[group].kind == GroupKind::Kernel;
    });
  }

  static bool canRepeat(const Expression& expr) {
    const OpKind kind = expr.op->kind;
    return isCheap(*expr.op) || kind == OpKind::Broadcast || kind == OpKind::Expand;
  }

  static bool isGenerator(const Expression& expr) {
    return expr.op->kind == OpKind::Iota || expr.op->kind == OpKind::Full;
  }

  static bool canGenerate(const Expression& expr) {
    const OpKind kind = expr.op->kind;
    return isGenerator(expr) || kind == OpKind::Pointwise || kind == OpKind::Broadcast ||
           kind == OpKind::Expand;
  }

  // Returns the number of axes that are not broadcast axes.
  ptrdiff_t axesOf(ValueId value) const {
    const std::vector<IterDomain>& domain = fusion_.tensor(value).domain;
    return std::count_if(domain.begin(), domain.end(),
                         [](const IterDomain& axis) { return axis.kind != IterKind::Broadcast; });
  }

  // Returns a chain with which other kernels compute the value again. Prefers a chain that computes
  // it from indices (generatedChain()), then a chain that reads values in memory. The last choice
  // is a chain that reads values which the group can store instead, because they have fewer bytes.
  // Returns an empty chain if there is none. The value should then be stored.
  Chain shortestChain(ValueId value, int group) {
    std::vector<ValueId> instead;
    Chain chain = generatedChain(value, group);
    if (chain.empty()) chain = chainOf(value, group, false, instead);
    if (!chain.empty()) return chain;
    chain = chainOf(value, group, true, instead);
    if (!chain.empty()) stored_.insert(instead.begin(), instead.end());
    return chain;
  }

  // Returns a chain that computes the value from indices or constant elements, and possibly values
  // with fewer axes. Returns an empty chain if there is none.
  Chain generatedChain(ValueId value, int group) const {
    Chain chain;
    bool generates = false;
    std::vector<ValueId> next = {value};
    std::set<ValueId> seen;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (!seen.insert(id).second || fusion_.value(id).is_scalar) continue;
      const ExprId definition = fusion_.value(id).definition;
      const bool inside = definition != kNoExpr && segmented_.group_of[definition] == group;
      if (!inside || stored_.contains(id) || !canGenerate(fusion_.expr(definition))) {
        if (axesOf(id) >= axesOf(value)) return {};
        continue;
      }
      if (fusion_.tensor(id).sharding) return {};
      const Expression& expr = fusion_.expr(definition);
      generates = generates || isGenerator(expr);
      chain.push_back(definition);
      next.insert(next.end(), expr.inputs.begin(), expr.inputs.end());
    }
    if (!generates) return {};
    std::sort(chain.begin(), chain.end());
    return chain;
  }

  // Returns a chain that starts from values in memory, or an empty chain if there is none. Adds to
  // `instead` the values that the group would have to store for the chain. If `may_replace` is
  // false, the chain may need no such values.
  Chain chainOf(ValueId value, int group, bool may_replace, std::vector<ValueId>& instead) const {
    const ExprId last = fusion_.value(value).definition;
    if (last == kNoExpr || !canRepeat(fusion_.expr(last))) return {};
    Chain chain;
    const int64_t most = sizeOf(fusion_.tensor(value).dtype);
    int64_t bytes = 0;
    std::vector<ValueId> next = {value};
    std::set<ValueId> seen;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (!seen.insert(id).second || fusion_.value(id).is_scalar) continue;
      if (axesOf(id) < axesOf(value)) continue;  // a source with fewer axes does not count
      const ExprId definition = fusion_.value(id).definition;
      const bool inside = definition != kNoExpr && segmented_.group_of[definition] == group;
      const int64_t size = sizeOf(fusion_.tensor(id).dtype);
      const bool replaces = may_replace && inside && size < most;
      if (!inside || stored_.contains(id) || replaces) {
        bytes += size;
        if (replaces) instead.push_back(id);
        continue;
      }
      const Expression& expr = fusion_.expr(definition);
      if (!canRepeat(expr) || fusion_.tensor(id).sharding) return {};
      chain.push_back(definition);
      next.insert(next.end(), expr.inputs.begin(), expr.inputs.end());
    }
    if (bytes == 0 || bytes > most) return {};
    std::sort(chain.begin(), chain.end());
    return chain;
  }

  const SegmentedFusion& segmented_;
  const Fusion& fusion_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  const IdVector<ValueId, bool> is_output_;
  std::set<ValueId> stored_;  // the values that the current group stores in any case
};

// Copies the fusion. A group may read a value that has a chain and that another group computes.
// Copies of the chain are then inserted before the first expression of the reading group that needs
// them.
class Inserter {
 public:
  Inserter(const SegmentedFusion& segmented, const std::map<ValueId, Chain>& chains,
           const std::set<ExprId>& copies)
      : segmented_(segmented), fusion_(segmented.fusion), chains_(chains), rewriter_(fusion_) {
    for (ExprId id : copies) copies_.insert(fusion_.value(fusion_.expr(id).outputs[0]).name);
  }

  Recomputed run() {
    rewriter_.inputs();
    for (ExprId id : fusion_.exprs().ids()) {
      const Expression& expr = fusion_.expr(id);
      std::vector<ValueId> operands;
      for (ValueId input : expr.inputs) operands.push_back(operandFor(id, input));
      rewriter_.copyOn(id, std::move(operands));
    }
    // The original expressions may have no readers any more. removeDead() changes ids, so the
    // copies are found by name.
    Recomputed result{removeDead(std::move(rewriter_).finish()), {}};
    for (const Value& value : result.fusion.values()) {
      if (copies_.contains(value.name)) result.copies.insert(value.definition);
    }
    return result;
  }

 private:
  ValueId operandFor(ExprId user, ValueId input) {
    const auto found = chains_.find(input);
    const int group = segmented_.group_of[user];
    const ExprId definition = fusion_.value(input).definition;
    const bool crosses = found != chains_.end() && group != segmented_.group_of[definition];
    return crosses ? copyOf(found->second, input, group) : rewriter_.at(input);
  }

  ValueId copyOf(const Chain& chain, ValueId value, int group) {
    std::map<ValueId, ValueId>& made = made_[group];
    for (ExprId id : chain) {
      const Expression& expr = fusion_.expr(id);
      if (made.contains(expr.outputs[0])) continue;
      std::vector<ValueId> operands;
      for (ValueId input : expr.inputs) {
        const auto copy = made.find(input);
        operands.push_back(copy != made.end() ? copy->second : rewriter_.at(input));
      }
      const std::string name = rewriter_.freeName(fusion_.value(expr.outputs[0]).name);
      const ValueId copy = rewriter_.copyAside(id, std::move(operands), name);
      made.emplace(expr.outputs[0], copy);
      copies_.insert(name);
    }
    return made.at(value);
  }

  const SegmentedFusion& segmented_;
  const Fusion& fusion_;
  const std::map<ValueId, Chain>& chains_;
  FusionRewriter rewriter_;
  std::map<int, std::map<ValueId, ValueId>> made_;  // per group: value -> its copy
  std::unordered_set<std::string> copies_;          // names of the copies
};

}  // namespace

Recomputed recomputeAcrossCuts(const SegmentedFusion& segmented, const std::set<ExprId>& copies) {
  const std::map<ValueId, Chain> chains = Finder(segmented).find();
  if (chains.empty()) return {};
  return Inserter(segmented, chains, copies).run();
}

}  // namespace heddle
