#include "ir/graph/remove_dead.h"

#include <algorithm>

#include "ir/graph/rewrite.h"

namespace heddle {

Fusion removeDead(const Fusion& fusion) {
  IdVector<ValueId, bool> needed(fusion.values().size(), false);
  for (ValueId output : fusion.outputs()) needed[output] = true;
  std::vector<bool> live(fusion.exprs().size(), false);
  for (size_t i = fusion.exprs().size(); i-- > 0;) {
    const Expression& expr = fusion.exprs()[i];
    live[i] = needed[expr.outputs[0]];
    for (ValueId input : expr.inputs) {
      if (live[i]) needed[input] = true;
    }
  }
  if (std::find(live.begin(), live.end(), false) == live.end()) return fusion;
  FusionRewriter rewriter(fusion);
  rewriter.inputs();
  for (size_t i = 0; i < live.size(); ++i) {
    if (live[i]) rewriter.copy(static_cast<ExprId>(i));
  }
  return std::move(rewriter).finish();
}

}  // namespace heddle
