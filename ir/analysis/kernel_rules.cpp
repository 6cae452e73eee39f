#include "ir/analysis/kernel_rules.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <span>
#include <unordered_map>

#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_axes.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/error.h"

namespace heddle {
namespace {

std::string at(const Fusion& fusion, const Expression& expr) {
  std::string text = fmt::format("{} of %{}", expr.op->name, fusion.value(expr.outputs[0]).name);
  return expr.line > 0 ? fmt::format("{} at line {}", text, expr.line) : text;
}

std::string whyNotSet(const Fusion& fusion, const Expression& expr) {
  switch (reshardStepOf(fusion, expr).kind) {
    case ReshardStep::Kind::Same:
    case ReshardStep::Kind::Relayout:
      return {};
    case ReshardStep::Kind::Slice:
      return at(fusion, expr) + " is a view of this rank's block";
    case ReshardStep::Kind::Gather:
    case ReshardStep::Kind::AllReduce:
    case ReshardStep::Kind::ReduceScatter:
    case ReshardStep::Kind::AllToAll:
    case ReshardStep::Kind::Transfer:
    case ReshardStep::Kind::Broadcast:
    case ReshardStep::Kind::GatherTo:
    case ReshardStep::Kind::ScatterFrom:
    case ReshardStep::Kind::Compound:
      return at(fusion, expr) + " is a collective";
  }
  return {};
}

// Checks rule 1 of kernel_rules.h.
std::string whyNotOp(const Fusion& fusion, const Expression& expr) {
  switch (expr.op->kind) {
    case OpKind::Pointwise:
    case OpKind::Reduction:
    case OpKind::Broadcast:
    case OpKind::Expand:
    case OpKind::Full:
    case OpKind::Iota:
    case OpKind::Index:
      return {};
    case OpKind::Set:
      return whyNotSet(fusion, expr);
    case OpKind::Constant:
    case OpKind::SizeOf:
      return at(fusion, expr) + " is evaluated on the host";
    case OpKind::Reshape:
    case OpKind::Permute:
    case OpKind::Slice:
      return at(fusion, expr) + " is a view, which no kernel computes";
    case OpKind::Matmul:
    case OpKind::Scan:
    case OpKind::Scatter:
      return at(fusion, expr) + " is a library call";
  }
  return {};
}

// Checks whether a set of expressions can be one kernel. Call joinAxes() for each expression and
// then answer() once.
class Question {
 public:
  Question(const Fusion& fusion, const std::vector<ExprId>& exprs)
      : fusion_(fusion), exprs_(exprs), axes_(fusion) {}

  void joinAxes(ExprId id, const AxisMap& map) {
    const Expression& expr = fusion_.expr(id);
    std::vector<AxisNode>& seen = seen_;
    seen.assign(map.space.size(), AxisNode());
    auto walk = [&](const std::vector<ValueId>& values, const std::vector<std::vector<int>>& maps) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (&values == &expr.inputs && isIndexed(expr, i)) continue;
        axes_.touch(values[i]);
        for (size_t axis = 0; axis < maps[i].size(); ++axis) {
          if (maps[i][axis] == AxisMap::kNone || !axes_.moves(values[i], axis)) continue;
          const AxisNode node = axes_.id(values[i], axis);
          AxisNode& same = seen[static_cast<size_t>(maps[i][axis])];
          if (same.valid()) axes_.join(same, node);
          same = node;
        }
      }
    };
    walk(expr.inputs, map.inputs);
    walk(expr.outputs, map.outputs);
    if (expr.op->kind == OpKind::Index) indexed_.push_back(id);
    if (expr.op->kind != OpKind::Reduction) return;
    reductions_.push_back(id);
    for (size_t i = 0; i < map.space.size(); ++i) {
      if (map.space[i].kind == IterKind::Reduction && seen[i].valid()) {
        reduced_nodes_[id].push_back(seen[i]);
      }
    }
  }

  std::string answer(const std::vector<ValueId>& stored) {
    for (ValueId value : stored) axes_.touch(value);
    axes_.number();
    std::string why = checkIndexed();             // rule 7
    if (why.empty()) why = checkTwice();          // rule 2
    if (why.empty()) why = checkReductions();     // rule 3
    if (why.empty()) why = checkPasses();         // rule 4
    if (why.empty()) why = checkStored(stored);   // rule 5
    if (why.empty()) why = checkExtents(stored);  // rule 6
    return why;
  }

 private:
  std::string checkTwice() {
    for (ValueId value : axes_.values()) {
      const std::span<const KernelAxis> classes = axes_.classesOf(value);
      if (classes.size() < 2) continue;
      std::vector<KernelAxis> sorted(classes.begin(), classes.end());
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        return fmt::format("%{} would be read along two different axes in one kernel",
                           fusion_.value(value).name);
      }
    }
    return {};
  }

  std::string checkIndexed() const {
    for (ExprId id : indexed_) {
      const ValueId value = fusion_.expr(id).inputs[0];
      if (!isMadeHere(value)) continue;
      return fmt::format("{} reads %{} at computed indices: it must be in memory",
                         at(fusion_, fusion_.expr(id)), fusion_.value(value).name);
    }
    return {};
  }

  bool isMadeHere(ValueId value) const {
    const ExprId definition = fusion_.value(value).definition;
    return definition != kNoExpr && std::binary_search(exprs_.begin(), exprs_.end(), definition);
  }

  std::string checkReductions() {
    reduced_.assign(axes_.count(), 0);
    std::vector<KernelAxis> first;
    for (ExprId id : reductions_) {
      const Expression& expr = fusion_.expr(id);
      if (axes_.classesOf(expr.inputs[0]).size() != axes_.count()) {
        return fmt::format("{} reduces %{}, which does not span all axes of the kernel",
                           at(fusion_, expr), fusion_.value(expr.inputs[0]).name);
      }
      std::vector<KernelAxis> mine;
      for (AxisNode node : reduced_nodes_[id]) mine.push_back(axes_.numberOf(node));
      std::sort(mine.begin(), mine.end());
      if (id == reductions_.front()) first = mine;
      if (mine != first) {
        return fmt::format("{} and {} reduce different axes",
                           at(fusion_, fusion_.expr(reductions_.front())), at(fusion_, expr));
      }
      for (KernelAxis axis : mine) reduced_[axis] = 1;
    }
    return {};
  }

  using AxisSet = std::bitset<64>;

  AxisSet axesOf(ValueId value) const {
    AxisSet set;
    for (KernelAxis axis : axes_.classesOf(value)) set.set(axis.index());
    return set;
  }

  bool isReadByElement(const Expression& expr, size_t operand) const {
    return !isIndexed(expr, operand) && !fusion_.value(expr.inputs[operand]).is_scalar;
  }

  // The level of each value that depends on a reduction (rule 4).
  std::unordered_map<ValueId, int> levels() const {
    std::unordered_map<ValueId, int> levels;
    for (ExprId id : exprs_) {
      const Expression& expr = fusion_.expr(id);
      int level = 0;
      for (ValueId input : expr.inputs) {
        const auto found = levels.find(input);
        if (found != levels.end()) level = std::max(level, found->second);
      }
      if (expr.op->kind == OpKind::Reduction) ++level;
      if (level == 0) continue;
      for (ValueId output : expr.outputs) levels.emplace(output, level);
    }
    return levels;
  }

  std::string checkPasses() {
    if (reductions_.empty()) return {};
    const std::unordered_map<ValueId, int> levels = this->levels();
    const bool several = std::any_of(levels.begin(), levels.end(), [&](const auto& entry) {
      return entry.second > 1 || touchesReduced(entry.first);
    });
    return several ? checkSeveralPasses(levels) : std::string();
  }

  std::string checkSeveralPasses(const std::unordered_map<ValueId, int>& levels) {
    if (axes_.count() > AxisSet().size()) return "a kernel of several passes has too many axes";
    AxisSet all;
    for (size_t axis = 0; axis < axes_.count(); ++axis) all.set(axis);
    std::unordered_map<ValueId, AxisSet> read;  // axes of the tensors that a pass reads for a value
    for (ExprId id : exprs_) {
      const Expression& expr = fusion_.expr(id);
      AxisSet axes;
      if (expr.op->kind == OpKind::Index) axes = axesWithExtent(expr);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (!isReadByElement(expr, i)) continue;
        const auto found = read.find(expr.inputs[i]);
        axes |= found == read.end() ? axesOf(expr.inputs[i]) : found->second;
      }
      const bool reduction = expr.op->kind == OpKind::Reduction;
      if (reduction && axes != all) {
        return fmt::format("{} needs a pass that reads no tensor along one of its axes",
                           at(fusion_, expr));
      }
      if (reduction && levels.at(expr.outputs[0]) > kMostKernelPasses) {
        return fmt::format("{} would be pass {} over the data, of at most {} in one kernel",
                           at(fusion_, expr), levels.at(expr.outputs[0]), kMostKernelPasses);
      }
      if (reduction) axes = axesOf(expr.outputs[0]);
      for (ValueId output : expr.outputs) read.emplace(output, axes);
    }
    return {};
  }

  // Returns the axes of the result of an Index expression whose extents follow from operand 0.
  AxisSet axesWithExtent(const Expression& index) {
    AxisSet axes;
    for (const IndexedAxis& place : indexedAxesOf(fusion_, index)) {
      if (place.output_axis == IndexedAxis::kByValue) continue;
      const auto axis = static_cast<size_t>(place.output_axis);
      if (!axes_.moves(index.outputs[0], axis)) continue;
      axes.set(axes_.numberOf(axes_.id(index.outputs[0], axis)).index());
    }
    return axes;
  }

  bool touchesReduced(ValueId value) {
    const std::span<const KernelAxis> classes = axes_.classesOf(value);
    return std::any_of(classes.begin(), classes.end(),
                       [&](KernelAxis axis) { return reduced_[axis] != 0; });
  }

  std::string checkStored(const std::vector<ValueId>& stored) {
    size_t reduced = static_cast<size_t>(std::count(reduced_.begin(), reduced_.end(), 1));
    const size_t all = axes_.count();
    for (ValueId value : stored) {
      size_t own = axes_.classesOf(value).size();
      bool kept_only = !reductions_.empty() && own == all - reduced && !touchesReduced(value);
      if (own == all || kept_only) continue;
      return fmt::format("%{} must be stored, but spans only {} of the {} axes of the kernel",
                         fusion_.value(value).name, own, all);
    }
    return {};
  }

  std::string checkExtents(const std::vector<ValueId>& stored) {
    IdVector<KernelAxis, char> known(axes_.count(), 0);
    auto know = [&](ValueId value) {
      for (KernelAxis axis : axes_.classesOf(value)) known[axis] = 1;
    };
    for (ValueId value : stored) know(value);
    for (ValueId value : axes_.values()) {
      if (!isMadeHere(value)) know(value);
    }
    for (ExprId id : indexed_) {
      const Expression& expr = fusion_.expr(id);
      for (const IndexedAxis& place : indexedAxesOf(fusion_, expr)) {
        if (place.output_axis == IndexedAxis::kByValue) continue;
        const auto axis = static_cast<size_t>(place.output_axis);
        if (!axes_.moves(expr.outputs[0], axis)) continue;
        known[axes_.numberOf(axes_.id(expr.outputs[0], axis))] = 1;
      }
    }
    for (ValueId value : axes_.values()) {
      for (KernelAxis axis : axes_.classesOf(value)) {
        if (known[axis] != 0) continue;
        return fmt::format("%{} moves along an axis of no tensor that the kernel reads or stores",
                           fusion_.value(value).name);
      }
    }
    return {};
  }

  const Fusion& fusion_;
  const std::vector<ExprId>& exprs_;
  KernelAxes axes_;
  std::vector<AxisNode> seen_;  // scratch memory of joinAxes()
  std::vector<ExprId> reductions_;
  std::vector<ExprId> indexed_;  // Index expressions
  std::map<ExprId, std::vector<AxisNode>> reduced_nodes_;
  IdVector<KernelAxis, char> reduced_;
};

}  // namespace

KernelRules::KernelRules(const Fusion& fusion)
    : fusion_(fusion),
      readers_(readersOf(fusion)),
      is_output_(fusion.values().size(), 0),
      maps_(fusion.exprs().size()) {
  for (ValueId output : fusion.outputs()) is_output_[output] = 1;
}

const AxisMap& KernelRules::axisMap(ExprId id) {
  if (!maps_[id]) maps_[id] = axisMapOf(fusion_, fusion_.expr(id));
  return *maps_[id];
}

std::string KernelRules::violation(const std::vector<ExprId>& exprs) {
  std::vector<ValueId> stored;
  for (ExprId id : exprs) {
    for (ValueId output : fusion_.expr(id).outputs) {
      const std::vector<ExprId>& readers = readers_[output];
      bool outside = std::any_of(readers.begin(), readers.end(), [&](ExprId user) {
        return !std::binary_search(exprs.begin(), exprs.end(), user);
      });
      if (outside || is_output_[output] != 0) stored.push_back(output);
    }
  }
  return violation(exprs, stored);
}

std::string KernelRules::violation(const std::vector<ExprId>& exprs,
                                   const std::vector<ValueId>& stored) {
  Question question(fusion_, exprs);
  for (ExprId id : exprs) {
    std::string why = whyNotOp(fusion_, fusion_.expr(id));
    if (!why.empty()) return why;
    question.joinAxes(id, axisMap(id));
  }
  return question.answer(stored);
}

std::string kernelRuleViolation(const Fusion& segment) {
  std::vector<ExprId> exprs;
  for (ExprId id : segment.exprs().ids()) {
    const Expression& expr = segment.expr(id);
    if (expr.op->kind == OpKind::SizeOf) return whyNotOp(segment, expr);
    if (!isHostScalar(segment, expr)) exprs.push_back(id);
  }
  for (ValueId output : segment.outputs()) {
    const Value& value = segment.value(output);
    if (value.is_scalar) return fmt::format("%{} is a scalar, which the host computes", value.name);
  }
  return KernelRules(segment).violation(exprs, segment.outputs());
}

IdVector<ValueId, std::vector<ExprId>> readersOf(const Fusion& fusion) {
  IdVector<ValueId, std::vector<ExprId>> readers = fusion.users();
  for (std::vector<ExprId>& users : readers) {
    std::erase_if(users, [&](ExprId user) { return fusion.expr(user).op->kind == OpKind::SizeOf; });
  }
  return readers;
}

bool isCheap(const OpDef& op) {
  return op.kind == OpKind::Pointwise && op.text.find("hd::") == std::string_view::npos &&
         op.text.find('/') == std::string_view::npos;
}

bool isHostScalar(const Fusion& fusion, const Expression& expr) {
  return fusion.value(expr.outputs[0]).is_scalar;
}

}  // namespace heddle
