#include <algorithm>
#include <numeric>

#include "ir/base/error.h"
#include "ir/reference/elements.h"
#include "ir/reference/indexed.h"
#include "ir/reference/reference.h"

namespace heddle {
namespace {

// Selected elements of a value. data[i] is element indices[i] of the dense value. The indices are
// sorted and unique.
struct SparseValue {
  std::vector<int64_t> indices;
  HostTensor data;
};

// Returns the offsets that all combinations of indices along the inner axes (elements.h) of an
// operand give, in row-major order.
std::vector<int64_t> innerOffsets(const std::vector<int64_t>& sizes,
                                  const std::vector<int64_t>& strides) {
  std::vector<int64_t> offsets = {0};
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    std::vector<int64_t> grown;
    grown.reserve(offsets.size() * static_cast<size_t>(sizes[axis]));
    for (int64_t offset : offsets) {
      for (int64_t i = 0; i < sizes[axis]; ++i) grown.push_back(offset + i * strides[axis]);
    }
    offsets = std::move(grown);
  }
  return offsets;
}

// The elements of the operands that one expression reads to compute the selected elements of its
// output. operands[i] contains linear indices into operand i. For each output element it contains
// inner[i] consecutive entries.
struct Needs {
  std::vector<size_t> inner;
  std::vector<std::vector<int64_t>> operands;
};

Needs needsOf(const ReferenceContext& context, const Expression& expr,
              const std::vector<int64_t>& wanted) {
  const Accesses accesses = accessesOf(context, expr);
  const std::vector<int64_t> sizes = context.sizesOf(expr.outputs[0]);
  Needs needs;
  for (size_t i = 0; i < accesses.operands.size(); ++i) {
    const Access& access = accesses.operands[i];
    const bool bias = expr.op->kind == OpKind::Matmul && i == 2;
    const std::vector<int64_t> inner =
        bias ? std::vector<int64_t>{0} : innerOffsets(accesses.inner_sizes, access.inner_strides);
    needs.inner.push_back(inner.size());
    std::vector<int64_t>& list = needs.operands.emplace_back();
    list.reserve(wanted.size() * inner.size());
    for (int64_t linear : wanted) {
      int64_t place = access.offset;
      for (size_t axis = sizes.size(); axis-- > 0;) {
        place += linear % sizes[axis] * access.strides[axis];
        linear /= sizes[axis];
      }
      for (int64_t offset : inner) list.push_back(place + offset);
    }
  }
  return needs;
}

void sortUnique(std::vector<int64_t>& indices) {
  if (!std::is_sorted(indices.begin(), indices.end())) std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
}

// Returns the elements at `indices` as a dense list, in the order of `indices`.
HostTensor pick(const SparseValue& value, const std::vector<int64_t>& indices) {
  HostTensor out(value.data.dtype, {static_cast<int64_t>(indices.size())});
  const auto element = static_cast<size_t>(sizeOf(out.dtype));
  size_t at = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    // Fast path: usually the next element of `value` is the wanted one.
    if (at >= value.indices.size() || value.indices[at] != indices[i]) {
      auto found = std::lower_bound(value.indices.begin(), value.indices.end(), indices[i]);
      HEDDLE_CHECK(found != value.indices.end() && *found == indices[i],
                   "element {} was not asked for", indices[i]);
      at = static_cast<size_t>(found - value.indices.begin());
    }
    std::copy_n(value.data.data.get() + at * element, element, out.data.get() + i * element);
    ++at;
  }
  return out;
}

class SparseEvaluator {
 public:
  explicit SparseEvaluator(const ReferenceContext& context)
      : context_(context), values_(context.fusion.values().size()) {}

  void demand(const std::vector<std::vector<int64_t>>& wanted) {
    const Fusion& fusion = context_.fusion;
    for (size_t i = 0; i < wanted.size(); ++i) {
      add(fusion.outputs()[i], wanted[i]);
    }
    for (ExprId id : fusion.exprs().ids().reversed()) {
      const Expression& expr = fusion.expr(id);
      std::vector<int64_t>& indices = values_[expr.outputs[0]].indices;
      sortUnique(indices);
      if (indices.empty() || isLeaf(expr)) continue;
      if (isIndexed(expr.op->kind)) {
        for (ValueId input : expr.inputs) addAll(input);
        continue;
      }
      Needs needs = needsOf(context_, expr, indices);
      for (size_t k = 0; k < expr.inputs.size(); ++k) add(expr.inputs[k], needs.operands[k]);
    }
  }

  void evaluate() {
    for (ValueId id : context_.fusion.inputs()) {
      SparseValue& value = values_[id];
      sortUnique(value.indices);
      if (!value.indices.empty()) value.data = pickInput(id, value.indices);
    }
    for (const Expression& expr : context_.fusion.exprs()) {
      SparseValue& value = values_[expr.outputs[0]];
      if (!value.indices.empty()) value.data = compute(expr, value.indices);
    }
  }

  std::vector<Scalar> read(ValueId id, const std::vector<int64_t>& wanted) const {
    const HostTensor picked = pick(values_[id], wanted);
    std::vector<Scalar> result;
    for (int64_t i = 0; i < picked.numel(); ++i) result.push_back(picked.at(i));
    return result;
  }

 private:
  static bool isLeaf(const Expression& expr) {
    return expr.op->kind == OpKind::Constant || expr.op->kind == OpKind::SizeOf;
  }

  void add(ValueId id, const std::vector<int64_t>& more) {
    std::vector<int64_t>& indices = values_[id].indices;
    indices.insert(indices.end(), more.begin(), more.end());
    sortUnique(indices);
  }

  HostTensor pickInput(ValueId id, const std::vector<int64_t>& indices) const {
    const HostTensor whole = inputValue(context_, id);
    HostTensor out(whole.dtype, {static_cast<int64_t>(indices.size())});
    const int64_t element = sizeOf(whole.dtype);
    for (size_t i = 0; i < indices.size(); ++i) {
      std::copy_n(whole.data.get() + indices[i] * element, element,
                  out.data.get() + static_cast<int64_t>(i) * element);
    }
    return out;
  }

  // Demands all elements of a value, for expressions whose reads depend on data or span complete
  // lines.
  void addAll(ValueId id) {
    int64_t count = 1;
    for (int64_t size : context_.sizesOf(id)) count *= size;
    std::vector<int64_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    values_[id].indices = std::move(all);
  }

  HostTensor computeIndexed(const Expression& expr, const std::vector<int64_t>& indices) const {
    std::vector<HostTensor> operands;
    for (ValueId input : expr.inputs) {
      HostTensor whole = values_[input].data;
      whole.sizes = context_.sizesOf(input);
      operands.push_back(std::move(whole));
    }
    SparseValue whole;
    whole.data = evaluateIndexed(context_, expr, operands);
    whole.indices.resize(static_cast<size_t>(whole.data.numel()));
    std::iota(whole.indices.begin(), whole.indices.end(), 0);
    return pick(whole, indices);
  }

  HostTensor compute(const Expression& expr, const std::vector<int64_t>& indices) const {
    if (isLeaf(expr)) return leafValue(context_, expr);
    if (isIndexed(expr.op->kind)) return computeIndexed(expr, indices);
    const Needs needs = needsOf(context_, expr, indices);
    std::vector<HostTensor> operands;
    for (size_t k = 0; k < expr.inputs.size(); ++k) {
      operands.push_back(pick(values_[expr.inputs[k]], needs.operands[k]));
    }
    const DType dtype = context_.fusion.tensor(expr.outputs[0]).dtype;
    switch (expr.op->kind) {
      case OpKind::Pointwise:
        return pointwise(expr, operands, HostTensor(dtype, operands[0].sizes));
      case OpKind::Broadcast:
      case OpKind::Expand:
      case OpKind::Reshape:
      case OpKind::Permute:
      case OpKind::Slice:
      case OpKind::Set:
        return operands[0];
      case OpKind::Reduction:
      case OpKind::Matmul: {
        HostTensor out(dtype, {static_cast<int64_t>(indices.size())});
        if (computesInts(dtype)) {
          accumulate<int64_t>(expr, operands, needs.inner, out);
        } else {
          accumulate<double>(expr, operands, needs.inner, out);
        }
        return out;
      }
      case OpKind::Full:
      case OpKind::Iota:
      case OpKind::Index:
      case OpKind::Scan:
      case OpKind::Scatter:
      case OpKind::Constant:
      case OpKind::SizeOf:
        break;
    }
    HEDDLE_CHECK(false, "{} is a leaf", expr.op->name);
  }

  HostTensor pointwise(const Expression& expr, const std::vector<HostTensor>& operands,
                       HostTensor out) const {
    const ElementCore core(context_.fusion, expr);
    std::vector<ElementRun> runs(operands.size());
    for (int64_t first = 0; first < out.numel(); first += kBlock) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const DType dtype = operands[i].dtype;
        runs[i] = {operands[i].data.get() + first * sizeOf(dtype), dtype, 1};
      }
      core.run(runs, std::min(kBlock, out.numel() - first),
               out.data.get() + first * sizeOf(out.dtype));
    }
    return out;
  }

  // Computes each element of `out` from `inner` consecutive elements of each operand.
  template <class T>
  void accumulate(const Expression& expr, const std::vector<HostTensor>& operands,
                  const std::vector<size_t>& inner, HostTensor& out) const {
    const bool product = expr.op->kind == OpKind::Matmul;
    std::vector<std::vector<T>> lists;
    for (size_t count : inner) lists.emplace_back(count);
    std::vector<T> results;
    for (int64_t i = 0; i < out.numel(); ++i) {
      for (size_t k = 0; k < operands.size(); ++k) {
        const auto count = static_cast<int64_t>(inner[k]);
        const int64_t first = i * count * sizeOf(operands[k].dtype);
        Arithmetic<T>::load({operands[k].data.get() + first, operands[k].dtype, 1}, count,
                            out.dtype, lists[k].data());
      }
      T acc = product ? T{0} : Arithmetic<T>::identity(*expr.op, out.dtype);
      for (size_t j = 0; j < inner[0]; ++j) {
        const T pair[] = {acc, lists[0][j]};
        acc = product ? Arithmetic<T>::multiplyAdd(acc, lists[0][j], lists[1][j])
                      : Arithmetic<T>::combine(*expr.op)(pair);
      }
      if (product && lists.size() > 2) acc = Arithmetic<T>::multiplyAdd(acc, lists[2][0], T{1});
      results.push_back(product ? activated(acc, out.dtype, expr) : acc);
    }
    storeElements(results.data(), out.numel(), out.dtype, out.data.get());
  }

  const ReferenceContext& context_;
  IdVector<ValueId, SparseValue> values_;
};

}  // namespace

std::vector<std::vector<Scalar>> evaluateReferenceAt(
    const Fusion& fusion, const ReferenceInputs& inputs, const SizeBindings& sizes,
    const std::vector<std::vector<int64_t>>& wanted) {
  HEDDLE_USER_CHECK(wanted.size() == fusion.outputs().size(),
                    "fusion {} has {} outputs, got elements for {}", fusion.name,
                    fusion.outputs().size(), wanted.size());
  checkGuards(fusion, sizes);
  const ReferenceContext context{fusion, inputs, sizes};
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t count = 1;
    for (int64_t size : context.sizesOf(fusion.outputs()[i])) count *= size;
    for (int64_t index : wanted[i]) {
      HEDDLE_USER_CHECK(index >= 0 && index < count, "output %{} has no element {} of {}",
                        fusion.value(fusion.outputs()[i]).name, index, count);
    }
  }
  SparseEvaluator evaluator(context);
  evaluator.demand(wanted);
  evaluator.evaluate();
  std::vector<std::vector<Scalar>> result;
  for (size_t i = 0; i < wanted.size(); ++i) {
    result.push_back(evaluator.read(fusion.outputs()[i], wanted[i]));
  }
  return result;
}

}  // namespace heddle
