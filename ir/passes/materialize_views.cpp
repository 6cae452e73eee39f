#include "ir/passes/materialize_views.h"

#include <algorithm>
#include <map>

#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshape_order.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

class ViewMaterializer {
 public:
  explicit ViewMaterializer(const Fusion& fusion) : old_(fusion), rewriter_(fusion) {}

  Fusion run() {
    rewriter_.inputs();
    for (ExprId id : old_.exprs().ids()) {
      const Expression& expr = old_.expr(id);
      if (expr.op->kind != OpKind::Reshape) {
        rewriter_.copy(id);
      } else {
        reshape(id, expr);
      }
    }
    return std::move(rewriter_).finish();
  }

 private:
  void reshape(ExprId id, const Expression& expr) {
    const TensorView& in = old_.tensor(expr.inputs[0]);
    const std::optional<AxisOrder> order = elementOrder(old_, expr.inputs[0]);
    if (order && sameOrder(*order, rowMajor(in.rank()), in)) {
      rewriter_.copy(id);
    } else if (order && old_.tensor(expr.outputs[0]).layout.hint) {
      reshapeInPlace(expr, *order);
    } else {
      rewriter_.copyOn(id, {packed(expr.inputs[0], expr.line)});
    }
    // The hint has no effect any more: the memory of the operand determines the order of a view.
    rewriter_.fusion().layout(rewriter_.at(expr.outputs[0])).hint.reset();
  }

  // Returns a row-major copy. All reshapes of the value share the copy.
  ValueId packed(ValueId source, int line) {
    const auto found = packed_.find(source);
    if (found != packed_.end()) return found->second;
    const Value& value = old_.value(source);
    const ValueId copy = rewriter_.set(rewriter_.at(source), value.name + "_packed", line);
    rewriter_.fusion().setSharding(copy, value.tensor.sharding);
    rewriter_.fusion().layout(copy).needed = rowMajor(value.tensor.rank());
    return packed_.emplace(source, copy).first->second;
  }

  // Writes the reshape as a permute to the axes in memory order, a reshape, and a permute back.
  // inferOrders has checked that this is possible (reshapeInMemory()).
  void reshapeInPlace(const Expression& expr, const AxisOrder& order) {
    const TensorView& in = old_.tensor(expr.inputs[0]);
    const Value& out = old_.value(expr.outputs[0]);
    const std::vector<ReshapeGroup> groups = reshapeInMemory(in, out.tensor, order).value();
    std::vector<int64_t> from;
    for (const ReshapeGroup& group : groups) {
      for (size_t axis = group.in_begin; axis < group.in_end; ++axis) {
        from.push_back(static_cast<int64_t>(axis));
      }
    }
    const AxisOrder to = orderOfGroups(groups);
    std::vector<Size> sizes;
    std::vector<int64_t> back(to.size());
    for (size_t i = 0; i < to.size(); ++i) {
      sizes.push_back(out.tensor.domain[to[i]].extent);
      back[to[i]] = static_cast<int64_t>(i);
    }
    FusionBuilder& b = rewriter_.builder();
    b.name(rewriter_.freeName(out.name + "_memory")).line(expr.line);
    const ValueId memory = replicated(b.permute(rewriter_.at(expr.inputs[0]), from), in);
    b.name(rewriter_.freeName(out.name + "_regrouped"));
    const ValueId regrouped = replicated(b.reshape(memory, sizes), out.tensor);
    b.name(out.name);
    rewriter_.adopt(b.permute(regrouped, back), expr.outputs[0]);
  }

  // Gives the value a sharding on the mesh of `like` that splits no axis.
  ValueId replicated(ValueId id, const TensorView& like) {
    std::optional<Sharding> sharding = like.sharding;
    if (sharding) sharding->axes.assign(rewriter_.fusion().tensor(id).rank(), {});
    rewriter_.fusion().setSharding(id, std::move(sharding));
    return id;
  }

  const Fusion& old_;
  FusionRewriter rewriter_;
  std::map<ValueId, ValueId> packed_;  // id in the original fusion -> row-major copy
};

}  // namespace

Fusion materializeViews(const Fusion& fusion) { return ViewMaterializer(fusion).run(); }

}  // namespace heddle
