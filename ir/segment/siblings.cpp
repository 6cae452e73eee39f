#include "ir/segment/siblings.h"

#include <algorithm>

#include "ir/analysis/indexed_axes.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

using Readers = IdVector<ValueId, std::vector<ExprId>>;

// A reader of a value is compared with at most this number of other groups that read the value.
// This limits the time for a value with many readers.
constexpr size_t kMostOpen = 4;

class SiblingJoiner {
 public:
  SiblingJoiner(const Fusion& fusion, SegmentGraph& graph, KernelRules& rules,
                const Readers& readers, const std::function<bool(ExprId)>& is_kernel)
      : fusion_(fusion),
        graph_(graph),
        rules_(rules),
        readers_(readers),
        is_output_(fusion.outputFlags()),
        is_kernel_(is_kernel) {}

  std::vector<std::pair<ExprId, std::string>> run() {
    for (ValueId id : fusion_.values().ids()) {
      const Value& value = fusion_.value(id);
      if (!value.is_scalar && !value.tensor.sharding && readers_[id].size() > 1) joinReaders(id);
    }
    return std::move(joins_);
  }

 private:
  void joinReaders(ValueId id) {
    std::vector<ExprId> open;  // one reader of each of the last groups
    for (ExprId reader : readers_[id]) {
      if (!is_kernel_(reader) || isComputedIn(graph_.groupOf(reader), id)) continue;
      if (readsAtIndices(reader, id)) continue;
      const bool is_new = std::none_of(open.begin(), open.end(), [&](ExprId other) {
        return graph_.groupOf(other) == graph_.groupOf(reader) || merge(other, reader, id);
      });
      if (!is_new) continue;
      if (open.size() == kMostOpen) open.erase(open.begin());
      open.push_back(reader);
    }
  }

  bool isComputedIn(ExprId group, ValueId id) const {
    const ExprId definition = fusion_.value(id).definition;
    return definition != kNoExpr && graph_.groupOf(definition) == group;
  }

  bool readsAtIndices(ExprId reader, ValueId id) const {
    const Expression& expr = fusion_.expr(reader);
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      if (expr.inputs[i] == id && isIndexed(expr, i)) return true;
    }
    return false;
  }

  bool merge(ExprId a, ExprId b, ValueId shared) {
    const std::vector<ExprId>& x = graph_.members(graph_.groupOf(a));
    const std::vector<ExprId>& y = graph_.members(graph_.groupOf(b));
    if (x.size() + y.size() > kMostSiblingExprs) return false;
    if (axesOf(shared) < std::max(mostAxes(x), mostAxes(y))) return false;
    if (countStores(x) + countStores(y) > kMostSiblingStores) return false;
    std::vector<ExprId> both;
    std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    if (!rules_.violation(both).empty()) return false;
    if (!graph_.merge(graph_.groupOf(a), graph_.groupOf(b))) return false;
    joins_.emplace_back(
        b, fmt::format("%{} and %{} read %{}", nameOf(a), nameOf(b), fusion_.value(shared).name));
    return true;
  }

  // Returns the number of axes with more than one element.
  size_t axesOf(ValueId id) const {
    if (fusion_.value(id).is_scalar) return 0;
    const TensorView& tensor = fusion_.tensor(id);
    size_t count = 0;
    for (size_t axis = 0; axis < tensor.rank(); ++axis) count += isUnitAxis(tensor, axis) ? 0 : 1;
    return count;
  }

  size_t mostAxes(const std::vector<ExprId>& exprs) const {
    size_t most = 0;
    for (ExprId id : exprs) {
      const Expression& expr = fusion_.expr(id);
      for (ValueId input : expr.inputs) most = std::max(most, axesOf(input));
      for (ValueId output : expr.outputs) most = std::max(most, axesOf(output));
    }
    return most;
  }

  size_t countStores(const std::vector<ExprId>& exprs) const {
    size_t count = 0;
    for (ExprId id : exprs) {
      const ValueId out = fusion_.expr(id).outputs[0];
      const bool is_read_outside = std::any_of(
          readers_[out].begin(), readers_[out].end(),
          [&](ExprId user) { return !std::binary_search(exprs.begin(), exprs.end(), user); });
      count += is_output_[out] || is_read_outside ? 1 : 0;
    }
    return count;
  }

  const std::string& nameOf(ExprId id) const {
    return fusion_.value(fusion_.expr(id).outputs[0]).name;
  }

  const Fusion& fusion_;
  SegmentGraph& graph_;
  KernelRules& rules_;
  const Readers& readers_;
  const IdVector<ValueId, bool> is_output_;
  const std::function<bool(ExprId)>& is_kernel_;
  std::vector<std::pair<ExprId, std::string>> joins_;
};

}  // namespace

std::vector<std::pair<ExprId, std::string>> joinSiblings(
    const Fusion& fusion, SegmentGraph& graph, KernelRules& rules, const Readers& readers,
    const std::function<bool(ExprId)>& is_kernel) {
  return SiblingJoiner(fusion, graph, rules, readers, is_kernel).run();
}

}  // namespace heddle
