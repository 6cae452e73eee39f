#include "host/plan/by_value_inputs.h"

#include "ir/analysis/indexed_axes.h"
#include "ir/graph/rewrite.h"

namespace heddle::host {
namespace {

// Returns bool, f64 or i64: the widest type of the same category as `dtype`.
DType scalarType(DType dtype) {
  if (dtype == DType::Bool) return dtype;
  return isFloat(dtype) ? DType::F64 : DType::I64;
}

}  // namespace

bool mayComeByValue(const Fusion& segment, size_t position) {
  const ValueId id = segment.inputs().at(position);
  if (segment.value(id).is_scalar || segment.tensor(id).rank() > 0) return false;
  for (const Expression& expr : segment.exprs()) {
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      if (expr.inputs[i] == id && isIndexed(expr, i)) return false;
    }
  }
  for (ValueId output : segment.outputs()) {
    if (output == id) return false;
  }
  return true;
}

Fusion withValues(const Fusion& segment, const std::vector<bool>& by_value) {
  FusionRewriter rewriter(segment);
  std::vector<ValueId> scalars(by_value.size(), kNoValue);
  for (size_t i = 0; i < by_value.size(); ++i) {
    const ValueId id = segment.inputs()[i];
    const Value& value = segment.value(id);
    if (!by_value[i]) {
      rewriter.input(id);
      continue;
    }
    const std::string name = rewriter.freeName(value.name + "_value");
    scalars[i] = rewriter.builder().scalarInput(name, scalarType(value.tensor.dtype));
  }
  for (size_t i = 0; i < by_value.size(); ++i) {
    if (!by_value[i]) continue;
    const ValueId id = segment.inputs()[i];
    rewriter.builder().name(segment.value(id).name);
    rewriter.adopt(rewriter.builder().full(scalars[i], {}, segment.tensor(id).dtype), id);
  }
  for (ExprId id : segment.exprs().ids()) rewriter.copy(id);
  return std::move(rewriter).finish();
}

Fusion scalarStoreSegment(DType dtype) {
  FusionBuilder builder("value");
  const ValueId scalar = builder.scalarInput("value", scalarType(dtype));
  builder.output(builder.full(scalar, {}, dtype));
  return std::move(builder).build();
}

}  // namespace heddle::host
