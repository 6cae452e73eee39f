#include "ir/passes/views/materialize_views.h"

#include <map>
#include <optional>

#include "ir/analysis/memory_order.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

class ViewMaterializer {
 public:
  explicit ViewMaterializer(const Fusion& fusion)
      : old_(fusion), layouts_(elementLayouts(fusion)), rewriter_(fusion) {}

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
    const std::optional<Layout::Observed>& layout = layouts_[expr.inputs[0]];
    if (layout && isReshapeView(old_, expr, *layout)) {
      rewriter_.copy(id);
    } else {
      rewriter_.copyOn(id, {packed(expr.inputs[0], expr.line)});
    }
    // The reshape is now a view, so the memory of its operand determines its order. A hint that the
    // text of the fusion gives to the result has no effect.
    rewriter_.fusion().layout(rewriter_.at(expr.outputs[0])).hint.reset();
  }

  // Returns a row-major copy of `source`. All reshapes of `source` share the copy.
  ValueId packed(ValueId source, int line) {
    const auto found = packed_.find(source);
    if (found != packed_.end()) return found->second;
    const Value& value = old_.value(source);
    const ValueId copy = rewriter_.set(rewriter_.at(source), value.name + "_packed", line);
    rewriter_.fusion().setSharding(copy, value.tensor.sharding);
    rewriter_.fusion().layout(copy).needed = rowMajor(value.tensor.rank());
    return packed_.emplace(source, copy).first->second;
  }

  const Fusion& old_;
  const ElementLayouts layouts_;
  FusionRewriter rewriter_;
  std::map<ValueId, ValueId> packed_;  // id in the original fusion -> row-major copy
};

}  // namespace

Fusion materializeViews(const Fusion& fusion) { return ViewMaterializer(fusion).run(); }

}  // namespace heddle
