#include "ir/passes/materialize_views.h"

#include <map>

#include "ir/analysis/memory_order.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

bool liesRowMajor(const Fusion& fusion, ValueId id) {
  std::optional<AxisOrder> order = elementOrder(fusion, id);
  const TensorView& tensor = fusion.tensor(id);
  return order && sameOrder(*order, rowMajor(tensor.rank()), tensor);
}

}  // namespace

Fusion materializeViews(const Fusion& fusion) {
  FusionRewriter rewriter(fusion);
  rewriter.inputs();
  std::map<ValueId, ValueId> packed;  // id in the original fusion -> row-major copy
  for (ExprId id : fusion.exprs().ids()) {
    const Expression& expr = fusion.expr(id);
    if (expr.op->kind != OpKind::Reshape || liesRowMajor(fusion, expr.inputs[0])) {
      rewriter.copy(id);
      continue;
    }
    ValueId source = expr.inputs[0];
    auto found = packed.find(source);
    if (found == packed.end()) {
      const Value& value = fusion.value(source);
      ValueId copy = rewriter.set(rewriter.at(source), value.name + "_packed", expr.line);
      rewriter.fusion().setSharding(copy, value.tensor.sharding);
      rewriter.fusion().layout(copy).stride_order = rowMajor(value.tensor.rank());
      found = packed.emplace(source, copy).first;
    }
    rewriter.copyOn(id, {found->second});
  }
  return std::move(rewriter).finish();
}

}  // namespace heddle
