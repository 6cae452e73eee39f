#include "tools/random/rebuild.h"

#include <algorithm>
#include <set>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/reference/dense.h"

namespace heddle::random {
namespace {

// Returns the values that the reference computes, by id.
IdVector<ValueId, HostTensor> allValues(const FusionCase& from) {
  const ReferenceContext context{from.fusion, from.inputs, from.sizes};
  IdVector<ValueId, HostTensor> values(from.fusion.values().size());
  for (ValueId id : from.fusion.inputs()) {
    values[id] = inputValue(context, id);
  }
  for (const Expression& expr : from.fusion.exprs()) {
    std::vector<HostTensor> operands;
    for (ValueId id : expr.inputs) operands.push_back(values[id]);
    const bool leaf = expr.op->kind == OpKind::Constant || expr.op->kind == OpKind::SizeOf;
    values[expr.outputs[0]] =
        leaf ? leafValue(context, expr) : evaluateDense(context, expr, operands);
  }
  return values;
}

class Rebuilder {
 public:
  Rebuilder(const FusionCase& from, const Edits& edits)
      : from_(from), edits_(edits), builder_(from.fusion.name) {
    outputs_ = edits.outputs.empty() ? from.fusion.outputs() : edits.outputs;
    map_.assign(from.fusion.values().size(), kNoValue);
    needed_.assign(from.fusion.values().size(), false);
  }

  FusionCase run() {
    markNeeded();
    const bool cuts = std::any_of(edits_.replaced.begin(), edits_.replaced.end(),
                                  [](const auto& edit) { return !edit.second; });
    if (cuts) values_ = allValues(from_);
    for (const auto& [symbol, size] : from_.sizes) builder_.sizeDefault(symbol, size);
    for (size_t i = 0; i < from_.fusion.inputs().size(); ++i) copyInput(i);
    for (const auto& [id, by] : edits_.replaced) {
      if (!by && needed_[id]) newInput(id);
    }
    for (const Expression& expr : from_.fusion.exprs()) copy(expr);
    for (ValueId id : outputs_) builder_.output(at(id));
    result_.fusion = std::move(builder_).build();
    result_.sizes = from_.sizes;
    return std::move(result_);
  }

 private:
  // Follows the replacements, starting at `id`. Returns the first value that no other value
  // replaces.
  ValueId routed(ValueId id) const {
    for (auto found = edits_.replaced.find(id); found != edits_.replaced.end() && found->second;
         found = edits_.replaced.find(id)) {
      id = *found->second;
    }
    return id;
  }
  ValueId at(ValueId id) const { return map_[routed(id)]; }
  bool isCut(ValueId id) const {
    auto found = edits_.replaced.find(id);
    return found != edits_.replaced.end() && !found->second;
  }

  void markNeeded() {
    for (ValueId id : outputs_) needed_[routed(id)] = true;
    for (ExprId e : from_.fusion.exprs().ids().reversed()) {
      const Expression& expr = from_.fusion.expr(e);
      if (!needed_[expr.outputs[0]] || isCut(expr.outputs[0])) continue;
      for (ValueId id : expr.inputs) needed_[routed(id)] = true;
    }
  }

  void copyInput(size_t position) {
    const ValueId id = from_.fusion.inputs()[position];
    if (!needed_[id]) return;
    const Value& value = from_.fusion.value(id);
    ValueId now = kNoValue;
    if (value.is_scalar) {
      now = builder_.scalarInput(value.name, value.tensor.dtype, value.default_value);
      result_.inputs.scalars[now] = from_.inputs.scalars.at(id);
    } else {
      now = builder_.input(value.name, value.tensor);
      result_.inputs.tensors[now] = from_.inputs.tensors.at(id);
    }
    result_.layouts.push_back(from_.layouts[position]);
    map_[id] = now;
  }

  void newInput(ValueId id) {
    const Value& value = from_.fusion.value(id);
    const HostTensor& tensor = values_[id];
    ValueId now = kNoValue;
    if (value.is_scalar) {
      now = builder_.scalarInput(value.name, value.tensor.dtype, tensor.at(0));
      result_.inputs.scalars[now] = tensor.at(0);
      result_.layouts.emplace_back();
    } else {
      TensorView view = value.tensor;
      view.layout = {};
      now = builder_.input(value.name, std::move(view));
      result_.inputs.tensors[now] = tensor;
      result_.layouts.push_back({stridesFor(tensor.sizes, rowMajor(tensor.sizes.size())), 0});
    }
    map_[id] = now;
  }

  void copy(const Expression& expr) {
    const ValueId out = expr.outputs[0];
    if (!needed_[out] || map_[out] != kNoValue) return;
    std::vector<ValueId> operands;
    for (ValueId id : expr.inputs) operands.push_back(at(id));
    builder_.name(from_.fusion.value(out).name);
    map_[out] = builder_.apply(expr.op->name, std::move(operands), expr.attrs);
  }

  const FusionCase& from_;
  const Edits& edits_;
  FusionBuilder builder_;
  std::vector<ValueId> outputs_;
  IdVector<ValueId, ValueId> map_;  // old id -> new id
  IdVector<ValueId, bool> needed_;
  IdVector<ValueId, HostTensor> values_;
  FusionCase result_;
};

// Returns the first sizes[i] elements along each axis i.
HostTensor cutTo(const HostTensor& tensor, const std::vector<int64_t>& sizes) {
  TensorDesc block = denseDesc(tensor.dtype, sizes);
  block.global = tensor.sizes;
  return localBlock(tensor, block);
}

}  // namespace

FusionCase rebuild(const FusionCase& from, const Edits& edits) {
  return Rebuilder(from, edits).run();
}

FusionCase resized(const FusionCase& from, const SizeBindings& sizes) {
  FusionCase result = from;
  result.sizes = sizes;
  for (auto& [symbol, size] : result.fusion.size_defaults) size = sizes.at(symbol);
  for (auto& [id, tensor] : result.inputs.tensors) {
    std::vector<int64_t> extents;
    const std::vector<Size> symbolic = result.fusion.tensor(id).sizes();
    for (size_t axis = 0; axis < symbolic.size(); ++axis) {
      extents.push_back(symbolic[axis].evaluate(lookupIn(sizes)));
      HEDDLE_USER_CHECK(extents.back() >= 0 && extents.back() <= tensor.sizes[axis],
                        "axis {} of %{} would have to grow", axis, result.fusion.value(id).name);
    }
    tensor = cutTo(tensor, extents);
  }
  return result;  // strides of the larger tensor are legal for the smaller one
}

FusionCase withScalarDefaults(const FusionCase& from) {
  FusionCase result = from;
  for (const auto& [id, scalar] : result.inputs.scalars) {
    result.fusion.mutableValue(id).default_value = scalar;
  }
  return result;
}

}  // namespace heddle::random
