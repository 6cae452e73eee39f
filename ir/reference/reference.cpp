#include "ir/reference/reference.h"

#include <set>

#include "ir/base/error.h"
#include "ir/graph/size_scalars.h"
#include "ir/reference/concrete.h"
#include "ir/reference/dense.h"
#include "ir/reference/elements.h"

namespace heddle {
namespace {

// Evaluates all expressions in order. With `only_scalars`, it evaluates only scalars.
IdVector<ValueId, HostTensor> evaluateAll(const ReferenceContext& context, bool only_scalars) {
  const Fusion& fusion = context.fusion;
  IdVector<ValueId, HostTensor> values(fusion.values().size());
  for (ValueId id : fusion.inputs()) {
    if (!only_scalars || fusion.value(id).is_scalar) {
      values[id] = inputValue(context, id);
    }
  }
  const IdVector<ValueId, ExprId> last = lastUses(fusion);
  for (ExprId user : fusion.exprs().ids()) {
    const Expression& expr = fusion.expr(user);
    const ValueId out = expr.outputs[0];
    if (only_scalars && !fusion.value(out).is_scalar) continue;
    HostTensor result;
    if (isLeaf(expr)) {
      result = leafValue(context, expr);
    } else {
      std::vector<HostTensor> operands;
      for (ValueId id : expr.inputs) operands.push_back(values[id]);
      result = evaluateDense(context, expr, operands);
    }
    values[out] = std::move(result);
    if (only_scalars) continue;
    for (ValueId id : expr.inputs) {
      if (last[id] == user) values[id] = HostTensor();
    }
  }
  return values;
}

}  // namespace

IdVector<ValueId, ExprId> lastUses(const Fusion& fusion) {
  IdVector<ValueId, ExprId> last(fusion.values().size());
  for (ExprId user : fusion.exprs().ids()) {
    for (ValueId id : fusion.expr(user).inputs) last[id] = user;
  }
  for (ValueId id : fusion.outputs()) last[id] = fusion.exprs().endId();
  return last;
}

SizeBindings withScalars(const Fusion& fusion, const ReferenceInputs& inputs, SizeBindings sizes) {
  const std::set<std::string> symbols = scalarSymbols(fusion);
  for (ValueId id : fusion.inputs()) {
    const Value& value = fusion.value(id);
    const std::string symbol = scalarSymbol(value.name);
    if (!symbols.contains(symbol)) continue;
    const HostTensor element = inputValue({fusion, inputs, sizes}, id);
    sizes[symbol] = toInt(element.at(0));
  }
  return sizes;
}

std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& given) {
  const SizeBindings sizes = withScalars(fusion, inputs, given);
  if (!fusion.symbolic_sizes.empty()) {
    const ConcreteFusion concrete = concreteFor(fusion, inputs, sizes);
    return evaluateReference(concrete.fusion, concrete.inputs, sizes);
  }
  checkGuards(fusion.guards, sizes);
  const IdVector<ValueId, HostTensor> values = evaluateAll({fusion, inputs, sizes}, false);
  std::vector<HostTensor> outputs;
  for (ValueId id : fusion.outputs()) outputs.push_back(values[id]);
  return outputs;
}

std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& given) {
  const SizeBindings sizes = withScalars(fusion, inputs, given);
  const IdVector<ValueId, HostTensor> values = evaluateAll({fusion, inputs, sizes}, true);
  std::map<ValueId, Scalar> scalars;
  for (ValueId id : values.ids()) {
    if (fusion.value(id).is_scalar) scalars.emplace(id, values[id].at(0));
  }
  return scalars;
}

}  // namespace heddle
