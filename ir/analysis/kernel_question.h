#pragma once

#include <algorithm>
#include <bitset>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/analysis/axis_map.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_axes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"
#include "ir/graph/fusion.h"

namespace heddle {

// Names an expression in a message: its op, its result, and its line in the text of the fusion.
inline std::string describe(const Fusion& fusion, const Expression& expr) {
  std::string text = fmt::format("{} of %{}", expr.op->name, fusion.value(expr.outputs[0]).name);
  return expr.line > 0 ? fmt::format("{} at line {}", text, expr.line) : text;
}

// Checks whether a set of expressions can be one kernel, by the rules 2 to 6 in
// ir/analysis/kernel_rules.h. KernelRules::violation() also checks rule 1, and that each of parts()
// satisfies the rules. Call joinAxes() for each expression and then answer() once. answer() returns
// "" if the expressions can be one kernel that stores the values in `stored`. Otherwise it returns
// the reason why they cannot.
class KernelQuestion {
 public:
  KernelQuestion(const Fusion& fusion, const std::vector<ExprId>& exprs)
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

  // Returns the column reductions (rule 3 in ir/analysis/kernel_rules.h). Call answer() before
  // columns() and parts().
  std::vector<ExprId> columns() const { return {columns_.begin(), columns_.end()}; }

  struct Part {
    std::vector<ExprId> exprs;
    std::vector<ValueId> stored;
  };
  // Returns four parts of a segment with column reductions. Each part must satisfy the rules,
  // because codegen/families/columns.h computes the segment in one of two ways:
  //  - One kernel computes the segment. The first part is this kernel without its column
  //    reductions. It computes the operands of the column reductions, and all outputs that depend
  //    on no column reduction.
  //  - If the sizes do not allow such a kernel, the other three parts are kernels that run one
  //    after another. They compute the values per row that column reductions need, then the outputs
  //    that depend on column reductions, then all other outputs.
  std::vector<Part> parts(const std::vector<ValueId>& stored) {
    std::vector<ValueId> of_rows;
    std::vector<ValueId> of_columns;
    for (ValueId value : stored) {
      (of_columns_.contains(value) ? of_columns : of_rows).push_back(value);
    }
    std::vector<ValueId> operands;
    for (ExprId id : columns_) operands.push_back(fusion_.expr(id).inputs[0]);
    const std::vector<ValueId> shared = sharedRowValues(operands);
    operands.insert(operands.end(), of_rows.begin(), of_rows.end());
    // If a shared value is an output, it is copied from the result of the second part. The last
    // part therefore omits it.
    std::erase_if(of_rows, [&](ValueId value) {
      return std::find(shared.begin(), shared.end(), value) != shared.end();
    });
    return {partFor(operands, {}), partFor(shared, {}), partFor(of_columns, shared),
            partFor(of_rows, shared)};
  }

  std::string answer(const std::vector<ValueId>& stored) {
    for (ValueId value : stored) axes_.touch(value);
    axes_.number();
    std::string why = checkIndexed();            // rule 6
    if (why.empty()) why = checkTwice();         // rule 2
    if (why.empty()) why = checkReductions();    // rule 3
    if (why.empty()) why = checkSweeps();        // rule 4
    if (why.empty()) why = checkStored(stored);  // rule 5
    return why;
  }

 private:
  // Returns the expressions that compute `wanted` from `given` and from values that are computed
  // outside of this kernel.
  Part partFor(const std::vector<ValueId>& wanted, const std::vector<ValueId>& given) const {
    Part part{{}, wanted};
    std::set<ValueId> needed(wanted.begin(), wanted.end());
    for (ValueId value : given) needed.erase(value);
    for (auto id = exprs_.rbegin(); id != exprs_.rend(); ++id) {
      const Expression& expr = fusion_.expr(*id);
      const ValueId result = expr.outputs[0];
      if (!needed.contains(result)) continue;
      part.exprs.push_back(*id);
      for (ValueId input : expr.inputs) {
        if (std::find(given.begin(), given.end(), input) == given.end()) needed.insert(input);
      }
    }
    std::reverse(part.exprs.begin(), part.exprs.end());
    return part;
  }

  // Returns the values that the second part of parts() stores, and that the third and the fourth
  // part read. Each of these values has one element per row, depends on a reduction of rows, and is
  // needed to compute `operands`, the operands of the column reductions.
  std::vector<ValueId> sharedRowValues(const std::vector<ValueId>& operands) {
    const std::set<ValueId> of_rows = dependents(reductions_);
    std::set<ValueId> needed(operands.begin(), operands.end());
    std::vector<ValueId> found;
    for (auto id = exprs_.rbegin(); id != exprs_.rend(); ++id) {
      const Expression& expr = fusion_.expr(*id);
      const ValueId result = expr.outputs[0];
      if (!needed.contains(result) || !of_rows.contains(result)) continue;
      if (isPerRow(result)) {
        found.push_back(result);
      } else {
        needed.insert(expr.inputs.begin(), expr.inputs.end());
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  bool isPerRow(ValueId value) {
    const auto reduced = static_cast<size_t>(std::count(reduced_.begin(), reduced_.end(), 1));
    return axes_.classesOf(value).size() == axes_.count() - reduced && !touchesReduced(value);
  }

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
                         describe(fusion_, fusion_.expr(id)), fusion_.value(value).name);
    }
    return {};
  }

  bool isMadeHere(ValueId value) const {
    const ExprId definition = fusion_.value(value).definition;
    return definition != kNoExpr && std::binary_search(exprs_.begin(), exprs_.end(), definition);
  }

  std::string checkReductions() {
    reduced_.assign(axes_.count(), 0);
    std::map<std::vector<KernelAxis>, std::vector<ExprId>> by_axes;
    for (ExprId id : reductions_) {
      const Expression& expr = fusion_.expr(id);
      if (axes_.classesOf(expr.inputs[0]).size() != axes_.count()) {
        return fmt::format("{} reduces %{}, which does not span all axes of the kernel",
                           describe(fusion_, expr), fusion_.value(expr.inputs[0]).name);
      }
      std::vector<KernelAxis> mine;
      for (AxisNode node : reduced_nodes_[id]) mine.push_back(axes_.numberOf(node));
      std::sort(mine.begin(), mine.end());
      by_axes[mine].push_back(id);
    }
    if (by_axes.empty()) return {};
    const Reductions& a = *by_axes.begin();
    const Reductions& b = *by_axes.rbegin();
    const Reductions* rows = by_axes.size() > 2 ? nullptr : &a;
    if (by_axes.size() == 2) rows = chooseRows(a, b);
    if (rows == nullptr) {
      return fmt::format("{} and {} reduce different axes",
                         describe(fusion_, fusion_.expr(a.second.front())),
                         describe(fusion_, fusion_.expr(b.second.front())));
    }
    for (KernelAxis axis : rows->first) reduced_[axis] = 1;
    return by_axes.size() == 2 ? takeColumns(rows == &a ? b : a) : std::string();
  }

  // A set of reduced axes, and the reductions along them.
  using Reductions = std::pair<const std::vector<KernelAxis>, std::vector<ExprId>>;

  // Returns `a` or `b`, whichever reduces the rows. The other one consists of column reductions.
  // Returns nullptr if neither can consist of column reductions. If both can, the result is the one
  // that reduces the last axis of the operands.
  const Reductions* chooseRows(const Reductions& a, const Reductions& b) {
    if (a.first.empty() || b.first.empty()) return nullptr;
    if (a.first.size() + b.first.size() != axes_.count()) return nullptr;
    std::vector<KernelAxis> both = a.first;
    both.insert(both.end(), b.first.begin(), b.first.end());
    std::sort(both.begin(), both.end());
    if (std::adjacent_find(both.begin(), both.end()) != both.end()) return nullptr;
    const bool a_returns = returns(a);
    const bool b_returns = returns(b);
    if (a_returns != b_returns) return a_returns ? &a : &b;
    if (a_returns) return nullptr;
    const KernelAxis last = axes_.classesOf(fusion_.expr(a.second.front()).inputs[0]).back();
    return std::binary_search(a.first.begin(), a.first.end(), last) ? &a : &b;
  }

  // Returns the values that depend on these reductions.
  std::set<ValueId> dependents(const std::vector<ExprId>& reductions) const {
    std::set<ValueId> found;
    for (ExprId id : exprs_) {
      const Expression& expr = fusion_.expr(id);
      const bool depends = std::binary_search(reductions.begin(), reductions.end(), id) ||
                           std::any_of(expr.inputs.begin(), expr.inputs.end(),
                                       [&](ValueId input) { return found.contains(input); });
      if (depends) found.insert(expr.outputs.begin(), expr.outputs.end());
    }
    return found;
  }

  // Returns whether a value that depends on the reductions has an axis that they reduce.
  bool returns(const Reductions& reductions) {
    const std::set<ValueId> values = dependents(reductions.second);
    return std::any_of(values.begin(), values.end(), [&](ValueId value) {
      const std::span<const KernelAxis> own = axes_.classesOf(value);
      return std::any_of(own.begin(), own.end(), [&](KernelAxis axis) {
        return std::binary_search(reductions.first.begin(), reductions.first.end(), axis);
      });
    });
  }

  std::string takeColumns(const Reductions& columns) {
    for (ValueId value : axes_.values()) {
      const Value& one = fusion_.value(value);
      if (one.is_scalar || !one.tensor.sharding) continue;
      return fmt::format("%{} is sharded, and a kernel would reduce rows and columns", one.name);
    }
    columns_.insert(columns.second.begin(), columns.second.end());
    of_columns_ = dependents(columns.second);
    std::erase_if(reductions_, [&](ExprId id) { return columns_.contains(id); });
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

  // Returns the level (rule 4) of each value that depends on a reduction of rows but on no column
  // reduction.
  std::unordered_map<ValueId, int> levels() const {
    std::unordered_map<ValueId, int> levels;
    for (ExprId id : exprs_) {
      const Expression& expr = fusion_.expr(id);
      int level = 0;
      for (ValueId input : expr.inputs) {
        const auto found = levels.find(input);
        if (found != levels.end()) level = std::max(level, found->second);
      }
      if (expr.op->kind == OpKind::Reduction && !columns_.contains(id)) ++level;
      if (level == 0 || of_columns_.contains(expr.outputs[0])) continue;
      for (ValueId output : expr.outputs) levels.emplace(output, level);
    }
    return levels;
  }

  std::string checkSweeps() {
    if (reductions_.empty()) return {};
    const std::unordered_map<ValueId, int> levels = this->levels();
    const bool several = std::any_of(levels.begin(), levels.end(), [&](const auto& entry) {
      return entry.second > 1 || touchesReduced(entry.first);
    });
    return several ? checkSeveralSweeps(levels) : std::string();
  }

  std::string checkSeveralSweeps(const std::unordered_map<ValueId, int>& levels) {
    if (axes_.count() > AxisSet().size()) return "a kernel of several sweeps has too many axes";
    AxisSet all;
    for (size_t axis = 0; axis < axes_.count(); ++axis) all.set(axis);
    // Per value: all axes along which the sweep that computes the value reads tensors or results of
    // earlier sweeps, or generates elements (generatesAxes()).
    std::unordered_map<ValueId, AxisSet> read;
    for (ExprId id : exprs_) {
      const Expression& expr = fusion_.expr(id);
      AxisSet axes;
      if (expr.op->kind == OpKind::Index) axes = axesWithExtent(expr);
      if (generatesAxes(expr.op->kind)) axes = axesOf(expr.outputs[0]);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (!isReadByElement(expr, i)) continue;
        const auto found = read.find(expr.inputs[i]);
        axes |= found == read.end() ? axesOf(expr.inputs[i]) : found->second;
      }
      const bool reduction = expr.op->kind == OpKind::Reduction;
      if (reduction && axes != all) {
        return fmt::format("{} needs a sweep that reads no tensor along one of its axes",
                           describe(fusion_, expr));
      }
      if (reduction && !columns_.contains(id) && levels.at(expr.outputs[0]) > kMostKernelSweeps) {
        return fmt::format("{} would be sweep {} over the data, of at most {} in one kernel",
                           describe(fusion_, expr), levels.at(expr.outputs[0]), kMostKernelSweeps);
      }
      if (reduction) axes = axesOf(expr.outputs[0]);
      for (ValueId output : expr.outputs) read.emplace(output, axes);
    }
    return {};
  }

  // Returns whether the result of an op of this kind may have axes that no tensor in memory has.
  // The kernel then receives the extents of these axes from its caller (codegen/plan/generated.h).
  static bool generatesAxes(OpKind kind) {
    return kind == OpKind::Expand || kind == OpKind::Full || kind == OpKind::Iota;
  }

  // Returns the axes of an Index expression's result whose extents follow from operand 0. An axis
  // whose extent follows only from the index of `take` or `take_along_axis` is not among them.
  AxisSet axesWithExtent(const Expression& index) {
    AxisSet axes;
    for (const IndexedAxis& indexed : indexedAxesOf(fusion_, index)) {
      if (indexed.output_axis == IndexedAxis::kByValue) continue;
      const auto axis = static_cast<size_t>(indexed.output_axis);
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
      if (own == reduced && of_columns_.contains(value)) continue;
      return fmt::format("%{} must be stored, but spans only {} of the {} axes of the kernel",
                         fusion_.value(value).name, own, all);
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
  std::set<ExprId> columns_;            // column reductions
  std::set<ValueId> of_columns_;        // values that depend on column reductions
  IdVector<KernelAxis, char> reduced_;  // 1: an axis that row reductions reduce
};

}  // namespace heddle
