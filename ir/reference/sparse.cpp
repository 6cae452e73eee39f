#include "ir/reference/sparse.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/reference/concrete.h"
#include "ir/reference/dense.h"
#include "ir/reference/elements.h"
#include "ir/reference/indexed.h"
#include "ir/reference/needs.h"

namespace heddle {
namespace {

bool isNeeded(const std::optional<Selection>& selection) { return selection.has_value(); }

// Finds the elements of each value on which the selected elements of the outputs depend. of()
// returns these elements, and possibly some more (Selection::add()). It returns nullopt if the
// selected elements do not depend on the value.
class Demand {
 public:
  Demand(const ReferenceContext& context, const WantedElements& wanted)
      : context_(context), needed_(context.fusion.values().size()) {
    const Fusion& fusion = context.fusion;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) add(fusion.outputs()[i], *wanted[i]);
    }
    // The loop runs backwards. It therefore visits all readers of a value before the expression
    // that computes the value.
    for (ExprId id : fusion.exprs().ids().reversed()) {
      const Expression& expr = fusion.expr(id);
      const std::optional<Selection>& result = needed_[expr.outputs[0]];
      if (!isNeeded(result) || isLeaf(expr)) continue;
      const Needs needs = needsOf(context, expr, *result);
      for (size_t k = 0; k < expr.inputs.size(); ++k) add(expr.inputs[k], needs.operands[k]);
    }
  }

  const std::optional<Selection>& of(ValueId id) const { return needed_[id]; }

 private:
  void add(ValueId id, const Selection& more) {
    std::optional<Selection>& selection = needed_[id];
    if (!selection) {
      selection = more;
    } else {
      selection->add(more);
    }
  }

  const ReferenceContext& context_;
  IdVector<ValueId, std::optional<Selection>> needed_;
};

class SparseEvaluator {
 public:
  SparseEvaluator(const ReferenceContext& context, const Demand& demand, const RoundingNoise* noise)
      : context_(context),
        demand_(demand),
        noise_(noise),
        values_(context.fusion.values().size()) {}

  void run() {
    const Fusion& fusion = context_.fusion;
    for (ValueId id : fusion.inputs()) {
      if (isNeeded(demand_.of(id))) values_[id] = input(id, *demand_.of(id));
    }
    const IdVector<ValueId, ExprId> last = lastUses(fusion);
    for (ExprId id : fusion.exprs().ids()) {
      const Expression& expr = fusion.expr(id);
      const ValueId out = expr.outputs[0];
      if (isNeeded(demand_.of(out))) {
        values_[out] = isLeaf(expr) ? leafValue(context_, expr) : compute(expr, *demand_.of(out));
        if (noise_ != nullptr) {
          noise_->addToResult(fusion, expr, out, termsOf(expr), values_[out]);
        }
      }
      for (ValueId input : expr.inputs) {
        if (last[input] == id) values_[input] = HostTensor();
      }
    }
  }

  HostTensor read(ValueId id, const Selection& wanted) const {
    return elementsOf(values_[id], *demand_.of(id), wanted);
  }

 private:
  // Returns the number of elements that one element of the result may combine. These lie along the
  // reduced axes, the inner axis of a matrix product, or the axis of a scan or scatter.
  double termsOf(const Expression& expr) const {
    double terms = 1;
    switch (expr.op->kind) {
      case OpKind::Reduction:
        terms = countOf(expr.inputs[0]) / std::max(1.0, countOf(expr.outputs[0]));
        break;
      case OpKind::Matmul:
        terms = static_cast<double>(context_.sizesOf(expr.inputs[0]).back());
        break;
      case OpKind::Scan:
        terms = static_cast<double>(context_.sizesOf(expr.inputs[0])[expr.axis()]);
        break;
      case OpKind::Scatter:
        terms = static_cast<double>(context_.sizesOf(expr.inputs[2])[expr.axis()]);
        break;
      default:
        break;
    }
    return std::max(terms, 1.0);
  }
  double countOf(ValueId id) const {
    double count = 1;
    for (const int64_t size : context_.sizesOf(id)) count *= static_cast<double>(size);
    return count;
  }
  HostTensor input(ValueId id, const Selection& wanted) const {
    const Value& value = context_.fusion.value(id);
    const ReferenceInputs& inputs = context_.inputs;
    const std::vector<int64_t> sizes = context_.sizesOf(id);
    if (!value.is_scalar && inputs.random_seed && !inputs.tensors.contains(id)) {
      std::vector<std::vector<IndexRange>> axes;
      for (const IndexSet& axis : wanted.axes) axes.push_back(axis.ranges());
      return randomElements(value.tensor.dtype, sizes, axes, *inputs.random_seed, value.name);
    }
    return elementsOf(inputValue(context_, id), Selection::all(sizes), wanted);
  }

  // Computes the wanted elements of the result. Most ops are evaluated as dense ops on smaller
  // tensors (ReferenceContext::partial_sizes). A reshape and a slice are exceptions, because their
  // attributes refer to the full tensors.
  HostTensor compute(const Expression& expr, const Selection& wanted) const {
    const Needs needs = needsOf(context_, expr, wanted);
    const ValueId first = expr.inputs.empty() ? expr.outputs[0] : expr.inputs[0];
    switch (expr.op->kind) {
      case OpKind::Reshape:
        return reshapedElements(context_, expr, values_[first], *demand_.of(first), wanted);
      case OpKind::Slice: {
        HostTensor out = elementsOf(values_[first], *demand_.of(first), needs.operands[0]);
        out.sizes = wanted.sizes();
        return out;
      }
      default:
        break;
    }
    ReferenceContext part = context_;
    std::vector<HostTensor> operands;
    for (size_t k = 0; k < expr.inputs.size(); ++k) {
      const ValueId id = expr.inputs[k];
      operands.push_back(elementsOf(values_[id], *demand_.of(id), needs.operands[k]));
      if (noise_ != nullptr) noise_->addToOperand(expr, k, operands.back());
      part.partial_sizes[id] = needs.operands[k].sizes();
    }
    part.partial_sizes[expr.outputs[0]] = needs.computed.sizes();
    return elementsOf(evaluateDense(part, expr, operands), needs.computed, wanted);
  }

  const ReferenceContext& context_;
  const Demand& demand_;
  const RoundingNoise* noise_;
  IdVector<ValueId, HostTensor> values_;
};

void checkWanted(const ReferenceContext& context, const WantedElements& wanted) {
  const Fusion& fusion = context.fusion;
  HEDDLE_USER_CHECK(wanted.size() == fusion.outputs().size(),
                    "fusion {} has {} outputs, got elements for {}", fusion.name,
                    fusion.outputs().size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const ValueId id = fusion.outputs()[i];
    const std::vector<int64_t> sizes = context.sizesOf(id);
    HEDDLE_USER_CHECK(wanted[i]->axes.size() == sizes.size(),
                      "output %{} has {} axes, got indices for {}", fusion.value(id).name,
                      sizes.size(), wanted[i]->axes.size());
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (wanted[i]->axes[axis].empty()) continue;
      const int64_t first = wanted[i]->axes[axis].ranges().front().begin;
      const int64_t end = wanted[i]->axes[axis].ranges().back().end;
      HEDDLE_USER_CHECK(first >= 0 && end <= sizes[axis],
                        "output %{} has no element {} along axis {} of {} elements",
                        fusion.value(id).name, first < 0 ? first : end - 1, axis, sizes[axis]);
    }
  }
}

}  // namespace

std::vector<HostTensor> evaluateReferenceAt(const Fusion& fusion, const ReferenceInputs& inputs,
                                            const SizeBindings& given, const WantedElements& wanted,
                                            const RoundingNoise* noise) {
  const SizeBindings sizes = withScalars(fusion, inputs, given);
  if (!fusion.symbolic_sizes.empty()) {
    const ConcreteFusion concrete = concreteFor(fusion, inputs, sizes);
    return evaluateReferenceAt(concrete.fusion, concrete.inputs, sizes, wanted, noise);
  }
  checkGuards(fusion.guards, sizes);
  const ReferenceContext context{fusion, inputs, sizes};
  checkWanted(context, wanted);
  const Demand demand(context, wanted);
  SparseEvaluator evaluator(context, demand, noise);
  evaluator.run();
  std::vector<HostTensor> result;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ValueId id = fusion.outputs()[i];
    result.push_back(wanted[i] ? evaluator.read(id, *wanted[i]) : HostTensor());
  }
  return result;
}

ReferenceCost referenceCostAt(const Fusion& fusion, const SizeBindings& sizes,
                              const WantedElements& wanted) {
  if (!fusion.symbolic_sizes.empty()) {
    return referenceCostAt(concretizeSizes(fusion, sizes), sizes, wanted);
  }
  const ReferenceInputs none;
  const ReferenceContext context{fusion, none, sizes};
  checkWanted(context, wanted);
  const Demand demand(context, wanted);
  ReferenceCost cost;
  for (const Expression& expr : fusion.exprs()) {
    const ValueId out = expr.outputs[0];
    if (!isNeeded(demand.of(out)) || isLeaf(expr)) continue;
    const Needs needs = needsOf(context, expr, *demand.of(out));
    const auto count = static_cast<double>(needs.computed.count());
    double each = 1;
    if (expr.op->kind == OpKind::Matmul) {
      each = static_cast<double>(context.sizesOf(expr.inputs[0]).back());
    }
    double read = 0;
    for (const Selection& operand : needs.operands) read += static_cast<double>(operand.count());
    cost.operations += std::max(count * each, read);
    cost.bytes += count * static_cast<double>(sizeOf(fusion.tensor(out).dtype));
  }
  return cost;
}

}  // namespace heddle
