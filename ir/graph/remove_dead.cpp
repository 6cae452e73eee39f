#include "ir/graph/remove_dead.h"

#include <algorithm>

#include "ir/graph/rewrite.h"

namespace heddle {

Fusion removeDead(Fusion fusion) {
  IdVector<ValueId, bool> needed(fusion.values().size(), false);
  for (ValueId output : fusion.outputs()) needed[output] = true;
  IdVector<ExprId, bool> live(fusion.exprs().size(), false);
  for (ExprId id : fusion.exprs().ids().reversed()) {
    const Expression& expr = fusion.expr(id);
    live[id] = needed[expr.outputs[0]];
    for (ValueId input : expr.inputs) {
      if (live[id]) needed[input] = true;
    }
  }
  if (std::find(live.begin(), live.end(), false) == live.end()) return fusion;
  FusionRewriter rewriter(fusion);
  rewriter.inputs();
  for (ExprId id : live.ids()) {
    if (live[id]) rewriter.copy(id);
  }
  return std::move(rewriter).finish();
}

}  // namespace heddle
