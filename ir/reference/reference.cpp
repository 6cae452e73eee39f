#include "ir/reference/reference.h"

#include "ir/base/error.h"
#include "ir/reference/dense.h"
#include "ir/reference/elements.h"

namespace heddle {
namespace {

bool isLeaf(const Expression& expr) {
  return expr.op->kind == OpKind::Constant || expr.op->kind == OpKind::SizeOf;
}

// Returns the index of the last expression that reads each value. For outputs it is past the end.
std::vector<size_t> lastUses(const Fusion& fusion) {
  std::vector<size_t> last(fusion.values().size(), 0);
  for (size_t i = 0; i < fusion.exprs().size(); ++i) {
    for (ValueId id : fusion.exprs()[i].inputs) last[static_cast<size_t>(id)] = i;
  }
  for (ValueId id : fusion.outputs()) last[static_cast<size_t>(id)] = fusion.exprs().size();
  return last;
}

// Evaluates all expressions in order, or only scalars.
std::vector<HostTensor> evaluateAll(const ReferenceContext& context, bool only_scalars) {
  const Fusion& fusion = context.fusion;
  std::vector<HostTensor> values(fusion.values().size());
  for (ValueId id : fusion.inputs()) {
    if (!only_scalars || fusion.value(id).is_scalar) {
      values[static_cast<size_t>(id)] = inputValue(context, id);
    }
  }
  const std::vector<size_t> last = lastUses(fusion);
  for (size_t i = 0; i < fusion.exprs().size(); ++i) {
    const Expression& expr = fusion.exprs()[i];
    const ValueId out = expr.outputs[0];
    if (only_scalars && !fusion.value(out).is_scalar) continue;
    HostTensor result;
    if (isLeaf(expr)) {
      result = leafValue(context, expr);
    } else {
      std::vector<HostTensor> operands;
      for (ValueId id : expr.inputs) operands.push_back(values[static_cast<size_t>(id)]);
      result = evaluateDense(context, expr, operands);
    }
    values[static_cast<size_t>(out)] = std::move(result);
    if (only_scalars) continue;
    for (ValueId id : expr.inputs) {
      if (last[static_cast<size_t>(id)] == i) values[static_cast<size_t>(id)] = HostTensor();
    }
  }
  return values;
}

}  // namespace

std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes) {
  checkGuards(fusion, sizes);
  const std::vector<HostTensor> values = evaluateAll({fusion, inputs, sizes}, false);
  std::vector<HostTensor> outputs;
  for (ValueId id : fusion.outputs()) outputs.push_back(values[static_cast<size_t>(id)]);
  return outputs;
}

std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes) {
  const std::vector<HostTensor> values = evaluateAll({fusion, inputs, sizes}, true);
  std::map<ValueId, Scalar> scalars;
  for (size_t i = 0; i < values.size(); ++i) {
    if (fusion.values()[i].is_scalar) scalars.emplace(static_cast<ValueId>(i), values[i].at(0));
  }
  return scalars;
}

}  // namespace heddle
