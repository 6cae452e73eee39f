#include "ir/passes/fuse_epilogue.h"

#include <algorithm>

#include "ir/analysis/reshard_step.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

// Returns, for each expression, the matrix product into which the expression can be fused as the
// activation. The entry is kNoExpr if there is no such matrix product.
IdVector<ExprId, ExprId> productsOf(const Fusion& fusion) {
  const IdVector<ValueId, std::vector<ExprId>> users = fusion.users();
  const IdVector<ValueId, bool> is_output = fusion.outputFlags();
  IdVector<ExprId, ExprId> products(fusion.exprs().size(), kNoExpr);
  for (ExprId id : products.ids()) {
    const Expression& expr = fusion.expr(id);
    if (expr.op->name != "relu" || fusion.value(expr.outputs[0]).is_scalar) continue;
    const ValueId input = expr.inputs[0];
    const ExprId definition = fusion.value(input).definition;
    if (definition == kNoExpr) continue;
    const Expression& product = fusion.expr(definition);
    const TensorView& from = fusion.tensor(input);
    const TensorView& to = fusion.tensor(expr.outputs[0]);
    const bool fits = product.op->kind == OpKind::Matmul && product.find("activation") == nullptr &&
                      users[input].size() == 1 && !is_output[input] && from.dtype == to.dtype &&
                      from.domain == to.domain &&
                      from.sharding.has_value() == to.sharding.has_value() &&
                      (!from.sharding || samePlacement(from.sharding, *to.sharding));
    if (fits) products[id] = definition;
  }
  return products;
}

}  // namespace

Fusion fuseEpilogue(Fusion fusion) {
  const IdVector<ExprId, ExprId> products = productsOf(fusion);
  IdVector<ExprId, bool> taken(fusion.exprs().size(), false);
  for (ExprId product : products) {
    if (product != kNoExpr) taken[product] = true;
  }
  if (std::find(taken.begin(), taken.end(), true) == taken.end()) return fusion;
  FusionRewriter rewriter(fusion);
  rewriter.inputs();
  for (ExprId id : products.ids()) {
    if (taken[id]) continue;
    if (products[id] == kNoExpr) {
      rewriter.copy(id);
      continue;
    }
    const Expression& product = fusion.expr(products[id]);
    const ValueId result = fusion.expr(id).outputs[0];
    std::vector<ValueId> operands;
    for (ValueId input : product.inputs) operands.push_back(rewriter.at(input));
    auto attrs = product.attrs;
    attrs.emplace_back("activation", std::string("relu"));
    rewriter.builder().name(fusion.value(result).name).line(product.line);
    rewriter.adopt(
        rewriter.builder().apply(product.op->name, std::move(operands), std::move(attrs)), result);
  }
  return std::move(rewriter).finish();
}

}  // namespace heddle
